"""Queue objects as scenes and tests write them, and what the API says of them."""

from typing import Any, Final

from e2e.kube import Kube

Json = dict[str, Any]

LABEL: Final = "kai.scheduler/queue"
KIND: Final = "queues.scheduling.run.ai"
_FREE: Final = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def queue(name: str, parent: str = "", **gpu: float) -> Json:
    """A queue; gpu: quota, limit, overQuotaWeight. CPU and memory are unlimited."""
    shares = {"quota": 0, "limit": -1, "overQuotaWeight": 1, **gpu}
    spec: Json = {"resources": {"gpu": shares, "cpu": _FREE, "memory": _FREE}}
    if parent:
        spec["parentQueue"] = parent
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


async def apply(kube: Kube, *queues: Json) -> None:
    """Create or change these queues."""
    await kube.apply("default", list(queues))


async def status(kube: Kube, name: str) -> Json:
    """The queue's status, {} where it has none."""
    found = [q for q in await kube.items(KIND) if q["metadata"]["name"] == name]
    return dict(found[0].get("status") or {}) if found else {}


async def delete(kube: Kube, *names: str) -> None:
    """Delete these queues, if they are there."""
    await kube.run("delete", KIND, *names, "--ignore-not-found")
