"""What every scene needs: somewhere to tell, workloads to apply, and questions to ask of the cluster."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from e2e.checker import cliques
from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import pod
from e2e.stage import Stage

Json = dict[str, Any]

KAI_TOPOLOGY: Final = {
    "kai.scheduler/topology": "nvcf-mnnvl-topology",
    "kai.scheduler/topology-required-placement": "nvidia.com/gpu.clique",
}


@dataclass(frozen=True, slots=True)
class Play:
    """A scene at work. tell: one line of narration."""

    stage: Stage
    observer: Observer
    tell: Callable[[str], None]

    def where(self, namespace: str) -> dict[str, int]:
        """Live bound Pods of the namespace by the number of their clique (c0000, c0001, …)."""
        numbers = {label: f"c{i:04d}" for i, label in enumerate(self.stage.cliques)}
        counts = cliques(self.observer.snapshot(), namespace)
        return {numbers.get(label, "no clique"): count for label, count in sorted(counts.items())}

    async def bound(self, namespace: str, members: int, seconds: float = 30.0) -> None:
        """Wait until so many Pods of the namespace are bound."""

        async def all_bound() -> bool:
            return sum(self.where(namespace).values()) >= members

        await until(all_bound, f"{members} Pods of {namespace} are bound", seconds)

    async def waiting(self, namespace: str, reason: str, pod: str, seconds: float = 15.0) -> str:
        """Wait for an event of this reason on the Pod; its message."""
        found: list[str] = []

        async def told() -> bool:
            events = await self.stage.kube.items("events", namespace)
            mine = [e for e in events if e["reason"] == reason and e["involvedObject"]["name"] == pod]
            found.extend(e["message"] for e in sorted(mine, key=lambda e: str(e["lastTimestamp"])))
            return bool(found)

        await until(told, f"event {reason} on Pod {namespace}/{pod}", seconds)
        return found[-1]

    def clean(self, namespace: str) -> None:
        """The checker has nothing against this namespace."""
        violations = self.observer.checker.of(namespace)
        assert not violations, "; ".join(f"{v.promise}: {v.subject}: {v.detail}" for v in violations)


Scene = Callable[[Play], Awaitable[None]]


def statefulset(name: str, replicas: int, **template: Any) -> Json:
    """A Parallel StatefulSet with KAI's annotations, a whole node a replica."""
    spec = pod(name, **template)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "annotations": KAI_TOPOLOGY},
        "spec": {
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def spoken(where: dict[str, int]) -> str:
    """ "4 in c0001", or "nothing"."""
    return ", ".join(f"{count} in {clique}" for clique, count in Counter(where).items()) or "nothing"
