"""What the extender knows, as JSON over HTTP: read-only, on the private port, which is loopback's.

/debug/gangs                every gang, with what its Pods were told last
/debug/gang/{ns}/{name}     one gang (by label, owner or Pod): its members, and what each domain lacks
/debug/cliques              GPUs per clique: all, used, promised
/debug/state                counts, and who leads
"""

from collections import Counter
from dataclasses import asdict
from typing import Any, Final

import orjson
from aiohttp import web

from extender.consolidation import Consolidation
from extender.registry import Registry
from extender.rounds import Rounds
from extender.standing import Standing
from extender.store import PermitStore
from extender.views import GangView, Views
from gangs import sentences
from gangs.consolidation import Proposal
from gangs.planner import shortages
from gangs.pods import GangKey, Pod
from gangs.room import Room
from gangs.shortage import Shortage

MOST_DOMAINS: Final = 50  # of a gang's rejected domains, the nearest first

Json = dict[str, Any]


class Debug:
    """The pages. Mount with application()."""

    def __init__(
        self,
        views: Views,
        registry: Registry,
        room: Room,
        store: PermitStore,
        rounds: Rounds,
        consolidation: Consolidation,
    ) -> None:
        self._views = views
        self._registry = registry
        self._room = room
        self._store = store
        self._rounds = rounds
        self._consolidation = consolidation

    def application(self) -> web.Application:
        """To be mounted at /debug."""
        app = web.Application()
        app.router.add_get("/gangs", self.gangs)
        app.router.add_get("/gang/{namespace}/{name}", self.gang)
        app.router.add_get("/cliques", self.cliques)
        app.router.add_get("/state", self.state)
        return app

    async def gangs(self, _: web.Request) -> web.Response:
        """Every gang, by namespace and name."""
        rows = [_row(view) async for view in self._views.each()]
        return _json(sorted(rows, key=lambda row: (row["namespace"], row["name"], row["label"])))

    async def gang(self, request: web.Request) -> web.Response:
        """One gang and why it waits, worked out now."""
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        key = self._views.find(namespace, name)
        view = self._views.gang(key) if key else None
        if key is None or view is None:
            problem = f"no gang, owner or Pod of a gang is called {namespace}/{name}"
            return _json({"error": problem}, status=404)
        told = _row(view) | {"message": self._views.sentence(key), "members": self._members(key)}
        found = self._consolidation.proposal(key)
        told |= {"domains": self._domains(key), "hints": self._hints(key)}
        return _json(told | {"proposal": _proposal(found) if found else None})

    async def cliques(self, _: web.Request) -> web.Response:
        """GPUs per clique."""
        return _json([asdict(clique) for clique in self._views.cliques()])

    async def state(self, _: web.Request) -> web.Response:
        """Counts of everything that is kept in memory."""
        phases = Counter([view.phase.value async for view in self._views.each()])
        return _json(
            {
                "nodes": len(self._room.nodes),
                "pods": len(self._registry.pods),
                "gangs": dict(phases),
                "pending": len(self._rounds.pending),
                "promised": sum(len(p.seats) for p in self._store.permits.values()),
                "kept": "/".join(self._rounds.keeper.kept.domain) if self._rounds.keeper.kept else "",
            }
        )

    def _members(self, key: GangKey) -> list[Json]:
        permit = self._store.permit(key)
        members = sorted(self._registry.members(key), key=lambda pod: pod.name)
        return [_member(pod, permit.seats.get(pod.uid, "")) for pod in members if pod.live]

    def _hints(self, key: GangKey) -> list[str]:
        """What people should know besides."""
        row = self._rounds.pending.get(key)
        waits = row is not None and row.standing is Standing.WAITING
        return [sentences.NO_AUTOSCALING] if waits and row and any(p.gated for p in row.unseated) else []

    def _domains(self, key: GangKey) -> list[Json]:
        row = self._rounds.pending.get(key)
        if row is None or row.standing in (Standing.GATHERING, Standing.HELD):
            return []  # it is not room that it waits for
        found = sorted(shortages(self._rounds.boarding(row.gang), self._room), key=lambda s: -s.have)
        return [_shortage(lack) for lack in found[:MOST_DOMAINS]]


def _row(view: GangView) -> Json:
    return asdict(view) | {"domain": "/".join(view.domain)}


def _member(pod: Pod, promised: str) -> Json:
    return {"name": pod.name, "node": pod.node, "promised": promised, "gates": list(pod.gates)}


def _proposal(found: Proposal) -> Json:
    moves = [
        {"gang": move.gang, "members": move.members, "target": "/".join(move.target)} for move in found.moves
    ]
    return {"domain": "/".join(found.domain), "moves": moves}


def _shortage(lack: Shortage) -> Json:
    return {
        "domain": "/".join(lack.domain),
        "have": lack.have,
        "need": lack.need,
        "blockers": [{"why": words, "nodes": nodes} for words, nodes in lack.blockers],
    }


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json", status=status)
