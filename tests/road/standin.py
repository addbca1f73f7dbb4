"""In the place of Grove's operator: replays what the real one did, in its order.

    PodGang, nobody in it, Initialized False ──► Pods, gated ──► podReferences ──► gates, one Pod at a time
                                                                     └──► Initialized True

The first gates fall before Initialized turns True, those of a scaled gang once its base is scheduled; where
podReferences come late, so do the gates of whom they name.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from e2e.kube import Kube
from e2e.pods import GPUS
from tests import grove

Json = dict[str, Any]

_GANG: Final = "grove.io/podgang"
_CLIQUE: Final = "grove.io/podclique"
_BASE: Final = "grove.io/base-podgang"


@dataclass(frozen=True, slots=True)
class StandIn:
    """Grove's operator in one namespace. gangs, pods: what it makes, as it is at creation."""

    kube: Kube
    namespace: str
    gangs: Sequence[Json]
    pods: Sequence[Json]

    @classmethod
    def of(cls, kube: Kube, namespace: str, capture: str) -> "StandIn":
        """For one capture ("default", "kai" or "pcsg")."""
        return cls(kube, namespace, grove.podgangs(capture), grove.pods(capture))

    @property
    def names(self) -> list[str]:
        """Of its PodGangs, the base first."""
        return [gang["metadata"]["name"] for gang in self.gangs]

    async def create(self) -> None:
        """PodGangs first, then their Pods, all gated."""
        await self.kube.apply(self.namespace, [self._here(gang) for gang in self.gangs])
        for name in self.names:
            await self.initialize(name, "False", "PodGangPodsCreationPending")
        await self.kube.apply(self.namespace, self._pods())

    async def fill(self) -> None:
        """Name the Pods in their PodGangs."""
        for gang in self.gangs:
            body = grove.filled(gang, self._pods())
            await self._patch("podgang", gang["metadata"]["name"], body)

    async def initialize(
        self, podgang: str, status: str = "True", reason: str = "PodGangPodsCreated"
    ) -> None:
        """Say that all Pods are made, and in passing put the status back to that alone, as Grove does."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = {
            "type": "Initialized",
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": stamp,
        }
        body = {"status": {"phase": "Pending", "conditions": [row]}}
        await self._patch("podgang", podgang, body, "--subresource=status")

    async def ungate(self, podgang: str, cliques: Sequence[str] = ()) -> None:
        """Take Grove's gate off the PodGang's Pods, one after another; cliques: of these PodCliques only."""
        for pod in self._pods():
            labels = pod["metadata"]["labels"]
            if labels[_GANG] == podgang and labels[_CLIQUE] in (cliques or (labels[_CLIQUE],)):
                await self._ungate(pod["metadata"]["name"])

    async def scheduled(self, podgang: str) -> bool:
        """What Grove waits for before it ungates a scaled gang: minReplicas of each PodClique are bound."""
        gang = next(g for g in self.gangs if g["metadata"]["name"] == podgang)
        pods = await self.kube.items("pods", self.namespace, f"{_GANG}={podgang}")
        bound = [p["metadata"]["labels"][_CLIQUE] for p in pods if p["spec"].get("nodeName")]
        return all(bound.count(row["name"]) >= row["minReplicas"] for row in gang["spec"]["podgroups"])

    async def status(self, podgang: str) -> Json:
        """The PodGang's status."""
        found = json.loads(await self.kube.run("-n", self.namespace, "get", "podgang", podgang, "-o", "json"))
        return dict(found.get("status") or {})

    async def remove(self) -> None:
        """Everything that create made."""
        await self.kube.clear(self.namespace)
        await self.kube.run("-n", self.namespace, "delete", "podgangs", "--all")

    def _pods(self) -> list[Json]:
        return [_sized(self._here(pod)) for pod in self.pods]

    def _here(self, obj: Json) -> Json:
        obj = copy.deepcopy(obj)
        # Owners aren't here, and Kubernetes deletes what belongs to nobody.
        obj["metadata"]["namespace"] = self.namespace
        obj["metadata"].pop("ownerReferences", None)
        return obj

    async def _ungate(self, name: str) -> None:
        found = json.loads(await self.kube.run("-n", self.namespace, "get", "pod", name, "-o", "json"))
        names = [gate["name"] for gate in found["spec"].get("schedulingGates") or ()]
        if grove.GATE in names:
            path = f"/spec/schedulingGates/{names.index(grove.GATE)}"
            steps = [
                {"op": "test", "path": f"{path}/name", "value": grove.GATE},
                {"op": "remove", "path": path},
            ]
            await self._patch("pod", name, steps)

    async def _patch(self, kind: str, name: str, body: object, *options: str) -> None:
        kind_of_patch = "json" if isinstance(body, list) else "merge"
        arguments = ("patch", kind, name, f"--type={kind_of_patch}", *options, "-p", json.dumps(body))
        await self.kube.run("-n", self.namespace, *arguments)


def _sized(pod: Json) -> Json:
    """As many GPUs as a node of the stage has, where it asks for any."""
    for container in pod["spec"]["containers"]:
        limits = container.get("resources", {}).get("limits") or {}
        if "nvidia.com/gpu" in limits:
            container["resources"] = {"limits": {"nvidia.com/gpu": str(GPUS)}}
    return pod
