"""Errors that are for the user: one line, no trace."""


class UserError(Exception):
    """What went wrong, on which object or option, and what is allowed."""
