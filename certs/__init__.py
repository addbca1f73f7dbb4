"""Certificate authority and serving certificates.

issue (pure: keys and certificates as values) ◄── store (files: reuse, replace, write atomically)
      ▲
rotation (pure: which authority signs, which are trusted) ◄── secret (as a Secret), trust (as caBundle)
"""

from certs.store import Serving, ensure, replace_file

__all__ = ["Serving", "ensure", "replace_file"]
