"""What Prometheus is told on /metrics of the private port; read from memory at each scrape.

Labels are bounded: resources that are watched and phases, never names of gangs, Pods or nodes.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from extender.freshness import Freshness
from extender.rounds import Rounds, Standing
from extender.store import PermitStore

_HEADERS: Final = {"Content-Type": CONTENT_TYPE_LATEST}


@dataclass(frozen=True, slots=True)
class Gauges:
    """Reads the figures when Prometheus asks (a custom collector, since memory is the truth)."""

    store: PermitStore
    rounds: Rounds
    freshness: Freshness
    leads: Callable[[], bool]

    def collect(self) -> Iterator[Metric]:
        """Every metric there is."""
        yield _one("leader", "1 where this extender plans, grants and binds.", float(self.leads()))
        age = GaugeMetricFamily(
            "allaboard_watch_age_seconds",
            "Time since a watch brought a list, an event or a bookmark.",
            labels=["resource"],
        )
        for resource, seconds in sorted(self.freshness.ages.items()):
            age.add_metric([resource], seconds)
        yield age
        stale = float(bool(self.freshness.stale))
        yield _one("cache_stale", "1 while nothing new is granted, since a watch is too old.", stale)
        promised = sum(len(permit.seats) for permit in self.store.permits.values())
        yield _one("promised_pods", "Members with a granted seat that are not bound yet.", float(promised))
        waiting = GaugeMetricFamily(
            "allaboard_waiting_gangs", "Gangs with members that have no seat, by reason.", labels=["reason"]
        )
        rows = list(self.rounds.pending.values())
        counts = Counter(row.standing for row in rows)
        for reason in Standing:
            waiting.add_metric([reason.value], float(counts[reason]))
        yield waiting
        ungated = sum(not pod.gates for row in rows for pod in row.unseated)
        yield _one("ungated_waiting_pods", "Members held by refusal, since no gate holds them.", ungated)


def endpoint(gauges: Gauges) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler of GET /metrics."""
    registry = CollectorRegistry()
    registry.register(gauges)

    async def scrape(_: web.Request) -> web.StreamResponse:
        return web.Response(body=generate_latest(registry), headers=_HEADERS)

    return scrape


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"allaboard_{name}", text, value=value)
