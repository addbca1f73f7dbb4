"""Are queues' limits kept, and are shares fair? Judged from Pods and Queue objects alone.

limit      a queue, its descendants included, holds more GPUs than its limit, if only for a moment
fair share quotas first, then what is left by weight, nobody beyond its limit or its demand
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from e2e.checker import Checker, Snapshot, Violation, gpus_of, is_finished, node_of
from e2e.queues import LABEL

Json = Mapping[str, Any]

_NO_LIMIT: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Share:
    """What a Queue object says of GPUs."""

    name: str
    parent: str
    quota: float
    limit: float
    weight: float


def shares_of(queues: Iterable[Json]) -> list[Share]:
    """Queue objects as the API has them."""
    return [_share(queue["metadata"]["name"], queue["spec"]) for queue in queues]


def _share(name: str, spec: Json) -> Share:
    gpu = spec["resources"]["gpu"]
    quota, limit = (_NO_LIMIT if gpu[key] < 0 else float(gpu[key]) for key in ("quota", "limit"))
    return Share(name, spec.get("parentQueue", ""), quota, limit, float(gpu["overQuotaWeight"]))


class QueueChecker(Checker):
    """The checker that also watches over the limits of these queues. most: the highest that each held."""

    def __init__(self, shares: Iterable[Share]) -> None:
        super().__init__()
        self.shares = {share.name: share for share in shares}
        self.most: dict[str, int] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Judge this moment."""
        super().look(snapshot)
        for name, gpus in held(snapshot.pods.values(), self.shares).items():
            self.most[name] = max(gpus, self.most.get(name, 0))
            if gpus > self.shares[name].limit:
                detail = f"{gpus} GPUs held, the limit is {self.shares[name].limit:g}"
                self.violations.setdefault(Violation("limit", name, detail), snapshot.at)


def held(pods: Iterable[Json], shares: Mapping[str, Share]) -> dict[str, int]:
    """GPUs of bound Pods by queue, each counted for all queues above it as well."""
    found = dict.fromkeys(shares, 0)
    for pod in pods:
        name = (pod["metadata"].get("labels") or {}).get(LABEL, "")
        while node_of(pod) and not is_finished(pod) and name in shares:
            found[name] += gpus_of(pod)
            name = shares[name].parent
    return found


def fair(siblings: Collection[Share], demand: Mapping[str, float], amount: float) -> dict[str, float]:
    """How so much is divided fairly among sibling queues."""
    caps = {s.name: min(demand[s.name], s.limit) for s in siblings}
    quotas = {s.name: min(s.quota, caps[s.name]) for s in siblings}
    got = poured(amount, quotas, {s.name: amount if s.quota == _NO_LIMIT else s.quota for s in siblings})
    rest = {name: cap - got[name] for name, cap in caps.items()}
    more = poured(amount - sum(got.values()), rest, {s.name: s.weight for s in siblings})
    return {name: got[name] + more[name] for name in got}


def poured(amount: float, caps: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """The amount by weight, where nobody gets more than its cap: what one can't take goes to the others."""
    got = dict.fromkeys(caps, 0.0)
    thirsty = {name for name, cap in caps.items() if cap > 0 and weights[name] > 0}
    while thirsty:
        level = (amount - sum(got.values())) / sum(weights[name] for name in thirsty)
        full = {name for name in thirsty if caps[name] <= level * weights[name]}
        for name in full or thirsty:
            got[name] = caps[name] if full else level * weights[name]
        thirsty = thirsty - full if full else set()
    return got
