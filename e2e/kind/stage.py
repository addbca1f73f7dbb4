"""The stage where Allaboard runs in Pods: what crashes there is a Pod."""

from dataclasses import dataclass
from typing import Any

from e2e.kind.ground import NAMESPACE, rolled_out
from e2e.kube import Kube, until
from e2e.stage import Stage, staged

_LEASE = "allaboard-scheduler"


@dataclass(frozen=True, slots=True)
class InPods(Stage):
    """A cluster with Allaboard in Pods of its own."""

    async def crash(self, part: str) -> str:
        """Kill the Pod of the leader, whose extender and kube-scheduler end together."""
        before = await leader(self.kube)
        await self.kube.run("-n", NAMESPACE, "delete", f"pod/{before}", "--grace-period=0", "--force")

        async def another_leads() -> bool:
            return await leader(self.kube) not in ("", before)

        await until(another_leads, "another one leads", 60)
        await rolled_out(self.kube)
        return f"{part} of Pod {before}, which led"


async def leader(kube: Kube) -> str:
    """The Pod that leads, "" if nobody does."""
    leases: list[dict[str, Any]] = await kube.items("leases", NAMESPACE)
    holders = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or "" for lease in leases}
    return holders.get(_LEASE, "").partition("_")[0]


async def stage(kube: Kube) -> InPods:
    """The stage of a cluster where Allaboard is installed."""
    found = await staged(kube, dev=0)
    return InPods(found.kube, found.nodes, found.cliques, dev=0)
