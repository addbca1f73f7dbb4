"""What Prometheus is told on /metrics of the private port; every metric is described in gangs/figures.py.

memory ──► Gauges, read at each scrape        what happened ──► Meters, counted when it does
"""

import time
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from extender.freshness import Freshness
from extender.journal import Entry, Outcome
from extender.registry import Registry
from extender.rounds import Rounds
from extender.store import PermitStore
from extender.views import Views
from gangs import figures
from gangs.figures import Figure

_HEADERS: Final = {"Content-Type": CONTENT_TYPE_LATEST}

Values = Mapping[str, float]
"""By label value; "" where there is no label."""


class Meters:
    """Counters and histograms, all of them at 0 from the start."""

    def __init__(self, registry: Registry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.collectors = CollectorRegistry()
        self._registry = registry
        self.boardings = self._counter(figures.BOARDINGS)
        self.boarding = self._histogram(figures.BOARDING)
        self.time_to_board = self._histogram(figures.TIME_TO_BOARD)
        self.verb = self._histogram(figures.VERB)
        self.round = self._histogram(figures.ROUND)
        self.retries = self._counter(figures.RETRIES)
        self.events = self._counter(figures.EVENTS)
        self.events_lost = self._counter(figures.EVENTS_LOST)

    def follow(self, entry: Entry) -> None:
        """The journal has a new entry."""
        self.boardings.labels(entry.outcome.value).inc()
        if entry.outcome is Outcome.BOARDED and entry.whole:
            _, came = self._registry.quiet_since(entry.key)
            self.boarding.observe(entry.seconds)
            self.time_to_board.observe(max(0.0, entry.at - came))

    @web.middleware
    async def timed(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """How long each of kube-scheduler's calls takes."""
        began = time.perf_counter()
        try:
            answer: web.StreamResponse = await handler(request)
            return answer
        finally:
            verb = request.path.strip("/")
            if verb in figures.VERBS:
                self.verb.labels(verb).observe(time.perf_counter() - began)

    def _counter(self, figure: Figure) -> Counter:
        made = Counter(figure.name, figure.text, _labels(figure), registry=self.collectors)
        for value in figure.values:
            made.labels(value)
        return made

    def _histogram(self, figure: Figure) -> Histogram:
        labels, buckets = _labels(figure), figure.buckets
        made = Histogram(figure.name, figure.text, labels, registry=self.collectors, buckets=buckets)
        for value in figure.values:
            made.labels(value)
        return made


@dataclass(slots=True)
class Gauges:
    """Reads the figures when Prometheus asks, since memory is the truth. rebuilt: seconds, 0 until it is."""

    store: PermitStore
    rounds: Rounds
    freshness: Freshness
    views: Views
    leads: Callable[[], bool]
    clock: Callable[[], float]
    rebuilt: float = 0.0

    async def read(self) -> dict[Figure, Values]:
        """Every gauge there is."""
        rows = list(self.rounds.pending.values())
        standings = Counts(row.standing.value for row in rows)
        phases = Counts([view.phase.value async for view in self.views.each()])
        permits = self.store.permits.values()
        return {
            figures.BUILD: {_version(): 1.0},
            figures.LEADER: {"": float(self.leads())},
            figures.WATCH_AGE: self.freshness.ages,
            figures.STALE: {"": float(bool(self.freshness.stale))},
            figures.REBUILD: {"": self.rebuilt},
            figures.GANGS: {phase: float(phases[phase]) for phase in figures.PHASES},
            figures.WAITING_GANGS: {reason: float(standings[reason]) for reason in figures.WAITING},
            figures.UNGATED: {"": float(sum(not pod.gates for row in rows for pod in row.unseated))},
            figures.PROMISED_PODS: {"": float(sum(len(permit.seats) for permit in permits))},
            figures.OLDEST_BOARDING: {"": self.store.journal.oldest(self.clock())},
            figures.GPUS: self._gpus(),
        }

    def _gpus(self) -> Values:
        sums: Counts[str] = Counts()
        for row in self.views.cliques():
            free = max(0, row.gpus - row.used - row.promised)
            sums.update(used=row.used, promised=row.promised, free=free)
            if row.clique and row.used + row.promised:
                sums["fragmented"] += free
        return {state: float(sums[state]) for state in figures.GPU_STATES}


def endpoint(gauges: Gauges, meters: Meters) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler of GET /metrics."""

    async def scrape(_: web.Request) -> web.StreamResponse:
        registry = CollectorRegistry()
        registry.register(_Read(await gauges.read()))
        return web.Response(
            body=generate_latest(registry) + generate_latest(meters.collectors), headers=_HEADERS
        )

    return scrape


class _Read:
    """What was read, for prometheus_client."""

    def __init__(self, found: Mapping[Figure, Values]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Every gauge."""
        for figure, values in self._found.items():
            family = GaugeMetricFamily(figure.name, figure.text, labels=_labels(figure))
            for value, number in sorted(values.items()):
                family.add_metric([value] if figure.label else [], number)
            yield family


def _labels(figure: Figure) -> list[str]:
    return [figure.label] if figure.label else []


def _version() -> str:
    try:
        return version("allaboard")
    except PackageNotFoundError:
        return "unknown"
