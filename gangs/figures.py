"""Every metric by name: what it says and which labels it has. Others build alerts and dashboards on them.

Labels are bounded: verbs, phases, reasons, results, resources that are watched; never a gang, Pod or node.
docs/metrics.md is written from here; extender/metrics.py and webhook/metrics.py fill them in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gangs.reasons import Reason

_QUICK: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
_SLOW: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)


class Kind(StrEnum):
    """What Prometheus takes it for."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric. label: the only one it has, "" for none.

    values: that the label may take; () for kinds that are watched, or our version.
    """

    name: str
    kind: Kind
    text: str
    label: str = ""
    values: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names that can be queried."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


def _gauge(name: str, text: str, label: str = "", values: Iterable[str] = ()) -> Figure:
    return Figure(f"allaboard_{name}", Kind.GAUGE, text, label, tuple(map(str, values)))


def _counter(name: str, text: str, label: str = "", values: Iterable[str] = ()) -> Figure:
    return Figure(f"allaboard_{name}_total", Kind.COUNTER, text, label, tuple(map(str, values)))


def _histogram(
    name: str, text: str, buckets: tuple[float, ...], label: str = "", values: Iterable[str] = ()
) -> Figure:
    return Figure(f"allaboard_{name}_seconds", Kind.HISTOGRAM, text, label, tuple(map(str, values)), buckets)


PHASES: Final = ("Gathering", "Waiting", "Granted", "Boarding", "Aboard")
RESULTS: Final = ("granted", "boarded", "cancelled", "expired")
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
GPU_STATES: Final = ("used", "promised", "free", "fragmented")
WRITES: Final = ("grant", "binding")
ANSWERS: Final = ("patched", "unchanged", "undecided", "failed", "malformed")
WAITING: Final = (Reason.GATHERING, Reason.HELD, Reason.BACKING_OFF, Reason.WAITING)

BUILD: Final = _gauge("build_info", "1; the label is the version of Allaboard.", "version")

LEADER: Final = _gauge("leader", "1 where this extender plans, grants and binds.")
WATCH_AGE: Final = _gauge(
    "watch_age_seconds", "Time since a watch brought a list, an event or a bookmark.", "resource"
)
STALE: Final = _gauge("cache_stale", "1 while nothing new is granted, since a watch is too old.")
REBUILD: Final = _gauge("rebuild_seconds", "From the start until the caches were synced; 0 until then.")
GANGS: Final = _gauge("gangs", "Gangs by where on their road they are.", "phase", PHASES)
WAITING_GANGS: Final = _gauge(
    "waiting_gangs", "Gangs with members that have no seat, by reason.", "reason", WAITING
)
UNGATED: Final = _gauge("ungated_waiting_pods", "Members held by refusal, since no gate holds them.")
PROMISED_PODS: Final = _gauge("promised_pods", "Members with a granted seat that are not bound yet.")
OLDEST_BOARDING: Final = _gauge(
    "oldest_boarding_seconds",
    "Age of the oldest boarding under way, whose room nobody else gets; 0 for none.",
)
GPUS: Final = _gauge(
    "gpus",
    "GPUs: used by bound Pods, promised to members not bound yet, free; fragmented are the free ones in "
    "cliques that are not wholly free, of no use to a gang that needs a whole clique.",
    "state",
    GPU_STATES,
)
BOARDINGS: Final = _counter(
    "boardings",
    "Boardings begun (granted), and how they ended: all bound, a member could not take its seat "
    "(cancelled), or not every member came to the barrier in time (expired).",
    "result",
    RESULTS,
)
BOARDING: Final = _histogram("boarding", "From the grant until a whole gang was bound.", _SLOW)
TIME_TO_BOARD: Final = _histogram(
    "time_to_board", "From when a gang's last member came until the whole gang was bound.", _SLOW
)
VERB: Final = _histogram(
    "verb", "Answers to kube-scheduler; a bind waits for the gang.", (*_QUICK, *_SLOW[3:10]), "verb", VERBS
)
ROUND: Final = _histogram("round", "Planning rounds.", _QUICK)
RETRIES: Final = _counter("write_retries", "Writes to the API server that were tried again.", "write", WRITES)
EVENTS: Final = _counter("events", "Events written on Pods and controllers.", "reason", Reason)
EVENTS_LOST: Final = _counter("events_lost", "Events that could not be written, or were too many.")

ADMISSION: Final = _histogram(
    "admission",
    "Answers to the API server: patched or unchanged; undecided where the owner can't be read; failed is a "
    "fault of ours, after which the Pod is admitted as it is.",
    _QUICK,
    "answer",
    ANSWERS,
)
CERTIFICATE: Final = _gauge(
    "certificate_expiry_timestamp_seconds", "When the webhook's serving certificate expires, epoch seconds."
)

EXTENDER: Final = (
    *(LEADER, WATCH_AGE, STALE, REBUILD, GANGS, WAITING_GANGS, UNGATED, PROMISED_PODS, OLDEST_BOARDING, GPUS),
    *(BOARDINGS, BOARDING, TIME_TO_BOARD, VERB, ROUND, RETRIES, EVENTS, EVENTS_LOST, BUILD),
)
WEBHOOK: Final = (ADMISSION, CERTIFICATE, BUILD)
