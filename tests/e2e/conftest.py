"""A stage on the tests' own cluster, for whoever plays scenes there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from e2e.kube import Kube
from e2e.observer import Observer, observed
from e2e.stage import Stage, developing, staged


@asynccontextmanager
async def playing(cluster: Cluster, options: Sequence[str] = ()) -> AsyncIterator[tuple[Stage, Observer]]:
    """`allaboard dev` on the cluster, watched by the checker."""
    kube = Kube(cluster.kubeconfig, str(find("kubectl")))
    # What a failed test left would fail all that follow, and hide which one it was.
    await kube.clear(*{pod["metadata"]["namespace"] for pod in await kube.items("pods")} - {"kube-system"})
    async with developing(cluster.kubeconfig, options) as dev, observed(cluster.kubeconfig) as observer:
        await kube.namespace("others")
        yield await staged(kube, dev), observer
