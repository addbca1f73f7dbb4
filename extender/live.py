"""What the live page shows, and what of it has changed: nodes, gangs and the last boardings as JSON.

    memory ──► look() ──► Snapshot ──► changes(before, after) ──► server-sent events (page.py)

A browser gets everything once and then only what changed, so 300 cliques cost it a few bytes a second.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from extender.journal import Entry
from extender.registry import Registry
from extender.store import PermitStore
from extender.views import GangView, Views
from gangs.contract import GPU, NODE_CLIQUE
from gangs.nodes import Node
from gangs.pods import GangKey
from gangs.room import Room

MOST_ENTRIES: Final = 100  # of the journal, on a page that is opened

_BATCH: Final = 200  # nodes that are looked at before others get their turn

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes by name, gangs by "namespace/label", and the journal's entries."""

    at: float
    leads: bool
    nodes: Mapping[str, Json] = field(default_factory=dict)
    gangs: Mapping[str, Json] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()

    @property
    def newest(self) -> int:
        """The number of the last entry, 0 where there is none."""
        return self.entries[-1].number if self.entries else 0


class Live:
    """Looks at everything; call look() while somebody watches."""

    def __init__(
        self,
        views: Views,
        registry: Registry,
        room: Room,
        store: PermitStore,
        clock: Callable[[], float],
        leads: Callable[[], bool],
    ) -> None:
        self._views = views
        self._registry = registry
        self._room = room
        self._store = store
        self._clock = clock
        self._leads = leads

    async def look(self) -> Snapshot:
        """Everything as it is now."""
        nodes: dict[str, Json] = {}
        for number, node in enumerate(list(self._room.nodes.values())):
            if number % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            nodes[node.name] = self._node(node)
        gangs = {_id((view.namespace, view.label)): _gang(view) async for view in self._views.each()}
        return Snapshot(self._clock(), self._leads(), nodes, gangs, tuple(self._store.journal.entries))

    def _node(self, node: Node) -> Json:
        used, promised = self._views.taken(node.name)
        pods = (self._registry.pods.get(uid) for uid, _ in self._room.holders(node.name))
        return {
            "clique": node.labels.get(NODE_CLIQUE, ""),
            "gpus": node.allocatable.get(GPU, 0),
            "used": used,
            "promised": promised,
            "state": "" if node.ready and not node.cordoned else "cordoned" if node.ready else "not ready",
            "gangs": sorted({_id(pod.key) for pod in pods if pod and pod.gang}),
        }


def changes(before: Snapshot | None, after: Snapshot) -> Json:
    """What a page that shows the snapshot before must be told; {} for nothing. None: an empty page."""
    whole = before is None
    old = before or Snapshot(0, after.leads)
    told: Json = {
        "nodes": _changed(old.nodes, after.nodes),
        "gangs": _changed(old.gangs, after.gangs),
        "nodesGone": sorted(old.nodes.keys() - after.nodes.keys()),
        "gangsGone": sorted(old.gangs.keys() - after.gangs.keys()),
        "entries": [_entry(row) for row in after.entries[-MOST_ENTRIES:] if row.number > old.newest],
    }
    if whole or old.leads != after.leads or any(told.values()):
        return {"whole": whole, "at": after.at, "leads": after.leads, **told}
    return {}


def _changed(old: Mapping[str, Json], new: Mapping[str, Json]) -> Json:
    return {name: row for name, row in new.items() if old.get(name) != row}


def _gang(view: GangView) -> Json:
    return asdict(view) | {"domain": "/".join(view.domain)}


def _entry(entry: Entry) -> Json:
    return asdict(entry) | {"key": _id(entry.key), "domain": "/".join(entry.domain)}


def _id(key: GangKey) -> str:
    return "/".join(key)
