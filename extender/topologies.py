"""Whether a Topology that was missing at admission exists by now.

A workload may name a KAI Topology that is created after it. Its Pods then carry a blocking note, which
holds no longer once the Topology is there with that level. Asked only while somebody waits for one.
"""

from typing import Final, Protocol

from extender.api import ApiError, Json
from gangs.notes import Note

PATH: Final = "/apis/kai.scheduler/v1alpha1/topologies"


class Api(Protocol):
    """What is needed of the API client."""

    async def get(self, path: str) -> Json | None:
        """GET, None for 404."""


class Topologies:
    """The levels of every Topology, as of the last refresh."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._levels: dict[str, frozenset[str]] = {}

    def lifted(self, note: Note) -> bool:
        """Whether the note was about a Topology that exists now and has the level."""
        return bool(note.topology) and note.level in self._levels.get(note.topology, ())

    async def refresh(self) -> bool:
        """Read them anew; whether anything changed. Keeps what is known while the API server is away."""
        try:
            found = await self._api.get(PATH)
        except ApiError:
            return False
        levels = {
            item["metadata"]["name"]: frozenset(level["nodeLabel"] for level in item["spec"]["levels"])
            for item in (found or {}).get("items", ())
        }
        changed = levels != self._levels
        self._levels = levels
        return changed
