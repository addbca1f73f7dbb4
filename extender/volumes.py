"""Where a Pod's volumes let it go (rule 9 of the design).

A boarding may be cancelled after kube-scheduler has bound a volume for a member, or has chosen its node
for a provisioner. From then on its VolumeBinding filter refuses that member every node but those which
the volume allows, so the plan has to know:

    claim bound ──► node affinity of its PersistentVolume
    claim not bound, node chosen (volume.kubernetes.io/selected-node) ──► that node alone

A claim that is free to go anywhere says nothing here, and costs nothing. Which nodes have a fitting
volume for a claim without either is kube-scheduler's to say; the plan learns of it by refusal.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.wire import selector_terms
from gangs.nodes import Requirement, Term
from gangs.pods import Pod

CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"

Json = Mapping[str, Any]
Terms = tuple[Term, ...]
ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """volume: the PersistentVolume that it is bound to; node: the one chosen for its provisioner."""

    volume: str
    node: str

    @property
    def is_free(self) -> bool:
        return not self.volume and not self.node


class Volumes:
    """Claims and volumes that tie Pods to nodes. changed: called with namespace and name of a claim of
    which that may be news.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self.claims = _Claims(self)
        self.volumes = _PersistentVolumes(self)
        self._changed = changed
        self._claims: dict[ClaimKey, _Claim] = {}
        self._terms: dict[str, Terms] = {}  # by PersistentVolume, of those that don't go everywhere

    def ties(self, pod: Pod) -> Iterator[Terms]:
        """Where the Pod's volumes let it go, one by one, of those that can't be used everywhere."""
        return (terms for name in pod.claims if (terms := self._of((pod.namespace, name))))

    def _of(self, key: ClaimKey) -> Terms:
        claim = self._claims.get(key)
        if claim is None:
            return ()
        if claim.volume:
            return self._terms.get(claim.volume, ())
        return (Term((), (Requirement("metadata.name", "In", (claim.node,)),)),)

    def put_claim(self, key: ClaimKey, claim: _Claim | None) -> None:
        """The claim is as it is now; None: gone, or free to go anywhere."""
        if self._claims.get(key) == claim:
            return
        if claim is None:
            del self._claims[key]
        else:
            self._claims[key] = claim
        self._changed(*key)

    def put_volume(self, name: str, terms: Terms) -> None:
        """Where the volume can be used; (): everywhere, or it is gone."""
        if self._terms.get(name, ()) == terms:
            return
        if terms:
            self._terms[name] = terms
        else:
            del self._terms[name]
        for key, claim in self._claims.items():
            if claim.volume == name:
                self._changed(*key)


class _Claims:
    """Handler of PersistentVolumeClaims."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self._keys: dict[str, ClaimKey] = {}

    def put(self, obj: Json) -> None:
        """A claim is new or has changed."""
        meta = obj["metadata"]
        key = meta["namespace"], meta["name"]
        selected = (meta.get("annotations") or {}).get(_SELECTED_NODE, "")
        claim = _Claim((obj.get("spec") or {}).get("volumeName", ""), selected)
        if claim.is_free:
            self.drop(meta["uid"])
            return
        self._keys[meta["uid"]] = key
        self._volumes.put_claim(key, claim)

    def drop(self, uid: str) -> None:
        """A claim is gone."""
        key = self._keys.pop(uid, None)
        if key and key not in self._keys.values():  # else one of the same name is there already
            self._volumes.put_claim(key, None)


class _PersistentVolumes:
    """Handler of PersistentVolumes."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self._names: dict[str, str] = {}

    def put(self, obj: Json) -> None:
        """A volume is new or has changed."""
        meta = obj["metadata"]
        required = ((obj.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
        self._names[meta["uid"]] = meta["name"]
        self._volumes.put_volume(meta["name"], selector_terms(required.get("nodeSelectorTerms") or ()))

    def drop(self, uid: str) -> None:
        """A volume is gone."""
        name = self._names.pop(uid, "")
        if name not in self._names.values():
            self._volumes.put_volume(name, ())
