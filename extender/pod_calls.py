"""Calls of the API server about one Pod."""

from typing import Protocol

from extender import wire
from extender.api import Json
from gangs.pods import Pod


class Getter(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""


def pod_path(pod: Pod, part: str = "") -> str:
    """Where a Pod is, or one of its subresources (status, binding, eviction)."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    return f"{path}/{part}" if part else path


async def as_it_is(api: Getter, pod: Pod) -> Pod | None:
    """The Pod as the API server has it now, None where it is gone or is another one of this name.

    Raises ApiError.
    """
    found = await api.get(pod_path(pod))
    return wire.pod(found) if found and found["metadata"]["uid"] == pod.uid else None
