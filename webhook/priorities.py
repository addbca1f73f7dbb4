"""The PriorityClass that a workload asks for outside of its Pod template.

A name is taken only where the class exists: the API server refuses a Pod that names one which does not.
"""

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, Final

from gangs import contract
from gangs.notes import Note
from webhook.pod import Owner, Pod
from webhook.sets.common import is_name, mapping

_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/{}"


def path(name: str) -> str:
    """Where the API server has the class, "" where the name can be none."""
    return _PATH.format(name) if is_name(name) else ""


def paths(names: Iterable[str]) -> tuple[str, ...]:
    """The same for several."""
    return tuple(where for name in names if (where := path(name)))


def first(names: Iterable[str], found: Mapping[str, Any]) -> str:
    """The first of these classes that exists, "" if none does. found: what was looked up, by path."""
    return next((name for name in names if path(name) in found), "")


def missing(title: str, names: Iterable[str], found: Mapping[str, Any]) -> tuple[Note, ...]:
    """A note for each class that goes before the first which exists. title: of the object with the label."""
    absent = takewhile(lambda name: path(name) not in found, names)
    text = '{}: label {}: "{}" is no PriorityClass and is ignored'
    return tuple(Note(text.format(title, contract.KAI_PRIORITY, name)) for name in absent)


def of_group(group: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Of a PodGang or PodGroup: Grove and KAI write the class there and not onto the Pods."""
    name = mapping(group or {}, "spec").get("priorityClassName")
    return (str(name),) if name else ()


def by_labels(pod: Pod, owner: Owner | None) -> tuple[str, ...]:
    """KAI's label, on the owner or else the Pod; on Ray's objects another one goes before it."""
    labels = owner.labels if owner else {}
    names = (
        labels.get(contract.KAI_RAY_PRIORITY),
        labels.get(contract.KAI_PRIORITY),
        pod.labels.get(contract.KAI_PRIORITY),
    )
    return tuple(str(name) for name in names if name)
