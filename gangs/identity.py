"""Which gang a Pod belongs to: the value of its gang label.

The registry's key is (namespace, gang label). The label is readable first and unique last:
`llm-1f0c6a2b9d`, the name of what asked for the gang, then a hash of everything that tells it from a
namesake: dialect, kind, name, owner UID if there is one.
"""

import re
from hashlib import sha256

_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MAX_LABEL = 63  # Kubernetes label value
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASH = 10  # hex digits: 40 bits, collisions matter only inside one namespace


def is_label_value(text: str) -> bool:
    """Whether the API server takes it as the value of a label."""
    return _VALUE.fullmatch(text) is not None


def subgroup_label(name: str) -> str:
    """The subgroup label's value: its name, or one like it where that can be none."""
    return name if is_label_value(name) else gang_label("", "Subgroup", name)


def podgang_label(name: str) -> str:
    """The label of the gang that is Grove's PodGang of this name.

    Without a UID: Pods of a scaled gang know no more than the name of the one that boards before it.
    """
    return gang_label("grove", "PodGang", name)


def gang_label(dialect: str, kind: str, name: str, uid: str = "") -> str:
    """The gang label's value, a valid label value of at most 63 characters.

    uid is "" where the gang has no owner: then namesakes share the gang, one generation after another.
    """
    digest = sha256("\0".join((dialect, kind, name, uid)).encode()).hexdigest()[:_HASH]
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in name)
    head = readable[: _MAX_LABEL - _HASH - 1].strip("-.")
    return f"{head}-{digest}" if head else digest


def object_name(label: str) -> str:
    """The name of an object that stands for the gang with this label, which may hold what no name may."""
    if _NAME.fullmatch(label):
        return label
    readable = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    return f"{readable}-{sha256(label.encode()).hexdigest()[:_HASH]}".strip("-")
