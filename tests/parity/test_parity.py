"""The planner's verdict on a (Pod, node) pair is kube-scheduler's, on the real one and without an extender.

PAIRS=10000 and SEED=7 in the environment make it longer, or another.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local import nodes
from allaboard.local.cluster import Cluster
from extender import wire
from extender.api import Api, connect
from gangs.room import Room, Seat
from tests.parity.rules import OVERHEAD, RULES, RUNTIME, Pair, Rule, containers, switched_off
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(3600)]

Json = dict[str, Any]

_PAIRS: Final = int(os.environ.get("PAIRS", "770"))
_SEED: Final = int(os.environ.get("SEED", "1"))
_BATCH: Final = 800  # pairs in the cluster at one time
_AT_ONCE: Final = 32
_NAMESPACE: Final = "parity"
_PODS: Final = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_NODES: Final = "/api/v1/nodes"


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair with what kube-scheduler says of it: the objects as the API server has them."""

    rule: str
    number: int
    node: Json
    residents: list[Json]
    pod: Json

    @property
    def admitted(self) -> bool:
        return bool(self.pod["spec"].get("nodeName"))

    def agrees(self, rule: Rule | None = None) -> bool:
        """Whether the planner says the same; rule: one that it is not to know."""
        node, pod = switched_off(rule, self.node, self.pod) if rule else (self.node, self.pod)
        return _planned(node, self.residents, pod) == self.admitted


def _planned(node: Json, residents: Iterable[Json], pod: Json) -> bool:
    room, known = Room(), wire.node(node)
    room.put_node(known)
    for resident in map(wire.pod, residents):
        room.take(resident.uid, Seat(known.name, resident.shape.requests, resident.name))
    return room.slots(wire.pod(pod).shape, known) > 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(cluster: Cluster) -> AsyncIterator[list[Judged]]:
    api = await connect(cluster.kubeconfig)
    print(f"parity: PAIRS={_PAIRS} SEED={_SEED}")
    rng, found = random.Random(_SEED), []
    rows = [(rule, RULES[rule].make(rng)) for _, rule in zip(range(_PAIRS), _in_turn(), strict=False)]
    await api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    overhead = {"metadata": {"name": RUNTIME}, "handler": "parity", "overhead": {"podFixed": OVERHEAD}}
    await api.create("/apis/node.k8s.io/v1/runtimeclasses", overhead)
    await eventually(lambda: _there(api, f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/default"))
    try:
        for first in range(0, len(rows), _BATCH):
            found += await _judge(api, dict(enumerate(rows[first : first + _BATCH], start=first)))
        yield found
    finally:
        await api.delete(f"/api/v1/namespaces/{_NAMESPACE}")
        await api.delete(f"/apis/node.k8s.io/v1/runtimeclasses/{RUNTIME}")
        await api.close()


def _in_turn() -> Iterable[str]:
    while True:
        yield from RULES


async def _judge(api: Api, rows: dict[int, tuple[str, Pair]]) -> list[Judged]:
    """Let kube-scheduler decide on these pairs; afterwards the cluster is as it was before."""
    try:
        await _each(api.create(_NODES, _node(number, pair)) for number, (_, pair) in rows.items())
        sitting = [(n, i) for n, (_, pair) in rows.items() for i in range(len(pair.residents))]
        await _each(api.create(_PODS, _resident(n, i, rows[n][1])) for n, i in sitting)
        await _each(api.create(_PODS, _asker(number, pair)) for number, (_, pair) in rows.items())
        found: list[Judged] = []

        async def decided() -> bool:
            found[:] = await _look(api, rows)
            # A Pod may have been looked at before its node was there: "no" counts when it stays.
            return len(found) == len(rows) and all(row.agrees() for row in found)

        try:
            await eventually(decided, within=30)
        except TimeoutError:
            found[:] = await _look(api, rows)
        return found
    finally:
        await api.delete(_PODS, {"gracePeriodSeconds": 0})
        await _each(api.delete(f"{_NODES}/parity-{number}") for number in rows)


async def _look(api: Api, rows: dict[int, tuple[str, Pair]]) -> list[Judged]:
    pods = {p["metadata"]["name"]: p for p in (await api.get(_PODS) or {})["items"]}
    known = {n["metadata"]["name"]: n for n in (await api.get(_NODES) or {})["items"]}
    return [
        Judged(
            rule,
            number,
            known[f"parity-{number}"],
            [pods[f"resident-{number}-{i}"] for i in range(len(pair.residents))],
            pods[f"asker-{number}"],
        )
        for number, (rule, pair) in rows.items()
        if _has_verdict(pods[f"asker-{number}"])
    ]


def _has_verdict(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "PodScheduled" for c in conditions)


def _node(number: int, pair: Pair) -> Json:
    node = nodes.plain_node(f"parity-{number}")
    node["metadata"]["labels"] |= {"pair": str(number), **pair.labels}
    resources = {"pods": "110", **pair.allocatable}
    node["status"] |= {"allocatable": resources, "capacity": resources}
    return {**node, "spec": pair.node_spec}


def _resident(number: int, index: int, pair: Pair) -> Json:
    (container,) = containers(pair.residents[index])
    spec = {
        "nodeName": f"parity-{number}",
        "containers": [{**container, "ports": pair.ports}],
        "tolerations": [{"operator": "Exists"}],
        "affinity": pair.resident_affinity,
    }
    return {"metadata": {"name": f"resident-{number}-{index}", "labels": pair.resident_labels}, "spec": spec}


def _asker(number: int, pair: Pair) -> Json:
    spec = {**pair.pod_spec}
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "pair": str(number)}
    meta = {"name": f"asker-{number}", "labels": pair.pod_labels}
    return {"metadata": meta, "spec": _named(spec, f"parity-{number}")}


def _named(value: Any, node: str) -> Any:
    """The spec with "this" in the place of the node's name filled in."""
    if isinstance(value, dict):
        return {key: _named(inner, node) for key, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner, node) for inner in value]
    return node if value == "this" else value


async def _each(calls: Iterable[Awaitable[object]]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Awaitable[object]) -> None:
        async with slots:
            await call

    await asyncio.gather(*map(one, calls))


async def _there(api: Api, path: str) -> bool:
    return await api.get(path) is not None


async def test_the_planner_says_what_kube_scheduler_says_of_every_pair(judged: list[Judged]) -> None:
    assert len(judged) == _PAIRS
    wrong = [f"{j.rule}, pair {j.number}: kube-scheduler says {j.admitted}" for j in judged if not j.agrees()]
    assert wrong == [], f"SEED={_SEED}"


async def test_every_rule_is_seen_to_say_yes_and_no(judged: list[Judged]) -> None:
    counts = Counter((row.rule, row.admitted) for row in judged)
    least = min(10, _PAIRS // len(RULES) // 4)
    assert {(r, a): counts[r, a] for r in RULES for a in (True, False) if counts[r, a] < least} == {}


@pytest.mark.parametrize("rule", RULES)
async def test_a_planner_without_the_rule_is_found_out(judged: list[Judged], rule: str) -> None:
    assert not all(row.agrees(RULES[rule]) for row in judged if row.rule == rule)
