"""What a plan costs, on clusters from empty-ish to nearly full.

    python -m bench.planner --nodes 5000 --members 72 --json FILE

Cliques of 18 nodes with four GPUs each. Each case (how full, which gang) is planned again and again, and
before each plan one Pod moves, as in life, so that a plan pays for what changed since the last one.
Nodes are taken at random (the seed is printed), so the room that is left lies in pieces; then the case is
made sharp: one clique is cleared for a gang that is to fit, or every clique is brought below its size, one
of them to one seat less. Times are CPU time of the one thread, wall_ms those by the clock; the JSON's first
figures are the worst of all cases at --nodes. The slope is that of log(p50) over log(nodes), from a tenth
of the nodes to all of them: 0 is flat, 1 linear.
"""

import argparse
import gc
import math
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from rich.console import Console
from rich.table import Table

from gangs.contract import GPU, NODE_CLIQUE, NODE_HOSTNAME
from gangs.nodes import Node, Shape
from gangs.packing import Candidate
from gangs.planner import Boarding, place
from gangs.room import Room, Seat

CLIQUE_NODES: Final = 18
FULL_PERCENT: Final = (10, 50, 90, 99)
GANGS: Final = ("fits", "just too big", "three subgroups")
_LEVEL: Final = (NODE_CLIQUE,)
_GPUS: Final = 4
_KEYS: Final = ("p50", "p99", "max")
_PLANS: Final = 200
_EVENTS: Final = 2_000
_WHOLE_NODE: Final = {GPU: _GPUS, "pods": 1}
_SMALL: Final = {"cpu": 100, "pods": 1}


@dataclass(frozen=True, slots=True)
class Figures:
    """One case. plan_ms, wall_ms: p50, p99, max. event_us: one Pod's move, all that hangs on it renewed."""

    nodes: int
    full_percent: int
    gang: str
    placed: bool
    plan_ms: dict[str, float]
    wall_ms: dict[str, float]
    event_us: float


def main() -> None:
    """Measure, print a table and the slope, write the JSON."""
    options = _options()
    console = Console(width=110)
    console.print(f"seed {options.seed}, {options.members} members, cliques of {CLIQUE_NODES} nodes")
    sizes = sorted({max(CLIQUE_NODES * 8, options.nodes // 10), options.nodes})
    cases = [case for nodes in sizes for case in _measure(nodes, options.members, options.seed)]
    slope = _slope(cases)
    console.print(_table(cases))
    console.print(f"log-log slope of plan p50 over nodes: {slope:.2f}")
    if options.json:
        options.json.write_bytes(orjson.dumps(_report(cases, slope, options), option=orjson.OPT_INDENT_2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.planner", description="What a plan costs.")
    parser.add_argument("--nodes", type=_between(CLIQUE_NODES * 8, 200_000), default=5000)
    parser.add_argument("--members", type=_between(3, CLIQUE_NODES * _GPUS), default=72)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not between {least} and {most}")
        return value

    return number


def _measure(nodes: int, members: int, seed: int) -> Iterator[Figures]:
    for percent in FULL_PERCENT:
        for gang in GANGS:
            boarding = _boarding(gang, members)
            room = _cluster(nodes, percent, random.Random(seed))
            _sharpen(room, boarding, fits=gang != GANGS[1])
            placed = place(boarding, room) is not None
            if placed != (gang != GANGS[1]):
                raise SystemExit(f"{nodes} nodes, {percent} % full, {gang}: placed is {placed}")
            spent, passed = _plans(room, boarding, random.Random(seed))
            yield Figures(nodes, percent, gang, placed, spent, passed, _events(room, boarding))


def _boarding(gang: str, members: int) -> Boarding:
    """One shape; or three that differ in GPUs, as leaders, workers and helpers do.

    72 members of one GPU are 18 nodes of four: they fill one clique to the last GPU.
    """
    sizes = (0, 1, 2) if gang == GANGS[2] else (1,)
    shapes = [Shape({GPU: n, "cpu": 1_000, "pods": 1} if n else {"cpu": 1_000, "pods": 1}) for n in sizes]
    placed = tuple(Candidate(f"m{i}", shapes[i * len(shapes) // members]) for i in range(members))
    return Boarding(placed, members, _LEVEL)


def _cluster(nodes: int, percent: int, rng: random.Random) -> Room:
    room = Room()
    for i in range(nodes):
        room.put_node(_node(i))
    for i in rng.sample(range(nodes), nodes * percent // 100):
        room.take(f"u-{i}", Seat(f"n{i:06}", _WHOLE_NODE, "job"))
    return room


def _node(i: int) -> Node:
    name, clique = f"n{i:06}", f"c{i // CLIQUE_NODES:05}"
    offers = {GPU: _GPUS, "cpu": 64_000, "memory": 512 << 30, "pods": 110}
    return Node(name, {NODE_HOSTNAME: name, NODE_CLIQUE: clique}, offers)


def _sharpen(room: Room, boarding: Boarding, fits: bool) -> None:
    """Clear the first clique; if the gang isn't to fit, take seats of every clique until it doesn't."""
    shape, cliques = boarding.members[0].shape, {node.labels[NODE_CLIQUE] for node in room.nodes.values()}
    first = (min(cliques),)
    for node in room.nodes_of(_LEVEL, first):
        for holder, _ in list(room.holders(node.name)):
            room.give(holder)
    if fits:
        return
    for domain, left in list(room.domains(_LEVEL, shape).items()):
        surplus = left.slots - len(boarding.members) + 1
        names = sorted(room.members(_LEVEL, shape, domain))
        for i in range(max(0, surplus)):
            room.take(f"{domain[0]}-{i}", Seat(names[i // _GPUS], shape.requests, "job"))


def _plans(room: Room, boarding: Boarding, rng: random.Random) -> tuple[dict[str, float], dict[str, float]]:
    """How long a plan takes, as CPU and wall time in ms; one Pod's move since the last is part of it."""
    names, spent, passed = sorted(room.nodes), [], []
    gc.collect()
    for _ in range(_PLANS):
        began, cpu = time.perf_counter(), time.thread_time()
        room.take("mover", Seat(rng.choice(names), _SMALL, "mover"))
        place(boarding, room)
        spent.append((time.thread_time() - cpu) * 1e3)
        passed.append((time.perf_counter() - began) * 1e3)
    return _quantiles(spent), _quantiles(passed)


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": ordered[_PLANS // 2], "p99": ordered[_PLANS * 99 // 100 - 1], "max": ordered[-1]}


def _events(room: Room, boarding: Boarding) -> float:
    """Mean CPU cost of one Pod's move in microseconds, with the renewal of all that is derived from it."""
    names, shapes = sorted(room.nodes), {m.shape for m in boarding.members}
    began = time.thread_time()
    for i in range(_EVENTS):
        room.take("mover", Seat(names[i * 7919 % len(names)], _SMALL, "mover"))
        for shape in shapes:
            room.domains(_LEVEL, shape)
    return (time.thread_time() - began) * 1e6 / _EVENTS


def _slope(cases: Sequence[Figures]) -> float:
    """Between the smallest and the largest cluster, over the sum of p50 of all cases."""
    sizes = sorted({case.nodes for case in cases})
    if len(sizes) == 1:
        return 0.0
    small, large = (sum(c.plan_ms["p50"] for c in cases if c.nodes == n) for n in (sizes[0], sizes[-1]))
    return math.log(large / small) / math.log(sizes[-1] / sizes[0])


def _report(cases: Sequence[Figures], slope: float, options: argparse.Namespace) -> dict[str, Any]:
    asked = [case for case in cases if case.nodes == options.nodes]
    return {
        "nodes": options.nodes,
        "members": options.members,
        "seed": options.seed,
        "plan_ms": {key: max(case.plan_ms[key] for case in asked) for key in _KEYS},
        "wall_ms": {key: max(case.wall_ms[key] for case in asked) for key in _KEYS},
        "event_us": max(case.event_us for case in asked),
        "rss_mib": _rss_mib(),
        "slope": slope,
        "cases": [asdict(case) for case in cases],
    }


def _rss_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _table(cases: Sequence[Figures]) -> Table:
    table = Table("nodes", "full", "gang", "placed", "p50 ms", "p99 ms", "max ms", "wall p99", "event us")
    for case in cases:
        times = (f"{case.plan_ms[key]:.2f}" for key in _KEYS)
        placed = "yes" if case.placed else "no"
        wall = f"{case.wall_ms['p99']:.2f}"
        full = f"{case.full_percent} %"
        table.add_row(str(case.nodes), full, case.gang, placed, *times, wall, f"{case.event_us:.1f}")
    return table


if __name__ == "__main__":
    main()
