"""The one exception of this package: its text is for the person at the terminal."""


class LocalError(Exception):
    """The local cluster can't do what was asked; the text says what failed and what to do about it."""
