"""Pods that are evicted so that their gang can begin anew."""

from typing import Protocol

import structlog

from extender.api import ApiError, Json
from extender.pod_calls import pod_path
from gangs.pods import Pod

log = structlog.get_logger(__name__)


class Creator(Protocol):
    """What is needed of the API client."""

    async def create(self, path: str, body: Json) -> Json:
        """POST."""


def eviction(pod: Pod) -> Json:
    """The body that evicts this very Pod."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }


async def evict(api: Creator, pod: Pod, why: str) -> bool:
    """Evict this very Pod; False where that is refused, by a PodDisruptionBudget most likely.

    why: two or three words for the log.
    """
    name = f"{pod.namespace}/{pod.name}"
    try:
        await api.create(pod_path(pod, "eviction"), eviction(pod))
    except ApiError as error:
        log.warning("eviction refused", pod=name, why=why, error=str(error))
        return False
    log.info("evicted", pod=name, why=why)
    return True
