"""The PriorityClass that KAI's labels name, for workloads that carry it there and not in the Pod's spec.

As in KAI: the owner's label, else the Pod's, the first that exists; else the Pod keeps what its spec says.
"""

from dataclasses import dataclass
from typing import Final

from gangs import contract
from gangs.notes import Note
from webhook.pod import Owner, Pod

PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/{}"


@dataclass(frozen=True, slots=True)
class Wish:
    """A label that names a PriorityClass. title: the object that carries it."""

    title: str
    key: str
    name: str

    @property
    def missing(self) -> Note:
        """What is said where there is no such class."""
        return Note(f'{self.title}: label {self.key}: "{self.name}" is no PriorityClass and is ignored')


def wishes(pod: Pod, owner: Owner | None) -> list[Wish]:
    """The labels in the order in which they count."""
    carriers = [(owner.title, owner.labels)] if owner else []
    return [
        Wish(title, key, labels[key])
        for title, labels in (*carriers, (pod.title, pod.labels))
        for key in (contract.RAY_PRIORITY, contract.KAI_PRIORITY)
        if labels.get(key)
    ]
