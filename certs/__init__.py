"""Certificate authority and serving certificates.

issue (pure: keys and certificates as values) ◄── store (files: reuse, replace, write atomically)
"""

from certs.store import Serving, ensure

__all__ = ["Serving", "ensure"]
