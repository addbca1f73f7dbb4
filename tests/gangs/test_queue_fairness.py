"""Fair shares: gangs served one by one, against the closed form of weighted max-min fairness and of DRF."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.ledger import Ledger
from gangs.queues.tree import Queue, Tree, tree_of
from gangs.queues.turns import Turn, in_turn

FREE = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)
GANG = Amounts(1, 4_000, 32e9)  # the same mix everywhere: GPUs decide


def multiple(number: float) -> Amounts:
    """So many gangs' worth; -1 is unlimited."""
    return FREE if number < 0 else Amounts(*(number * value for value in GANG.values))


def queue(
    name: str, parent: str = "", quota: float = 0, weight: float = 1, limit: float = -1, priority: int = 100
) -> Queue:
    weights = Amounts(weight, weight, weight)
    return Queue(name, parent, priority, multiple(quota), multiple(limit), weights)


def serve(tree: Tree, capacity: Amounts, waiting: Mapping[str, tuple[int, Amounts]]) -> Ledger:
    """Every gang in its turn; it boards if the limits and what is left of the cluster allow it."""
    ledger = Ledger(tree, {})
    turns = [
        Turn(name, (0, 0, float(i), (name, str(i))), need)
        for name, (number, need) in waiting.items()
        for i in range(number)
    ]
    left = capacity
    for turn in in_turn(turns, ledger, capacity):
        after = left - turn.need
        if min(after.values) >= 0 and ledger.excess(turn.queue, turn.need) is None:
            ledger.take(turn.queue, turn.need)
            left = after
    return ledger


class TestClosedForm:
    """Weighted max-min fairness on random hierarchies: what the parent has is filled into its children."""

    @staticmethod
    @st.composite
    def hierarchies(draw: st.DrawFn) -> tuple[Tree, dict[str, int], int]:
        """Two levels of queues, how many gangs wait in each leaf, and how many there is room for."""
        queues, waiting = [], {}
        for top in range(draw(st.integers(1, 4))):
            queues.append(draw(TestClosedForm.queues(f"top{top}", "")))
            leaves = range(draw(st.integers(0, 3)))
            queues += [draw(TestClosedForm.queues(f"leaf{top}{leaf}", f"top{top}")) for leaf in leaves]
        tree = tree_of(queues)
        for name in tree.leaves:
            waiting[name] = draw(st.integers(0, 120))
        return tree, waiting, draw(st.integers(1, 160))

    @staticmethod
    @st.composite
    def queues(draw: st.DrawFn, name: str, parent: str) -> Queue:
        return queue(
            name,
            parent,
            quota=draw(st.sampled_from([0, 0, 1, 5, 20, 60, -1])),
            weight=draw(st.sampled_from([0, 0.5, 1, 1, 2, 5])),
            limit=draw(st.sampled_from([-1, -1, 3, 30, 80])),
            priority=draw(st.sampled_from([100, 100, 200])),
        )

    @settings(max_examples=200, deadline=None)
    @given(hierarchies())
    def test_each_queue_gets_its_share_of_what_its_parent_queue_has(
        self, scene: tuple[Tree, dict[str, int], int]
    ) -> None:
        tree, waiting, room = scene
        ledger = serve(tree, multiple(room), {name: (n, GANG) for name, n in waiting.items()})
        wanted = demands(tree, waiting, "")
        for parent in ("", *tree.children):
            has = room if parent == "" else ledger.held(parent).gpu
            siblings = tree.children.get(parent, ())
            fair = fair_shares([tree.queues[s] for s in siblings], wanted, has, room)
            for name, share in fair.items():
                off = abs(ledger.held(name).gpu - share)
                # Webster's method: half a gang, and half a gang per sibling in proportion.
                bound = max(1.0, 0.05 * share, 0.5 + len(siblings) * share / max(1.0, has) / 2)
                assert off <= bound + 1e-6, (name, ledger.held(name).gpu, fair)

    @settings(max_examples=100, deadline=None)
    @given(hierarchies())
    def test_nothing_is_left_over_that_some_queue_may_have(
        self, scene: tuple[Tree, dict[str, int], int]
    ) -> None:
        tree, waiting, room = scene
        ledger = serve(tree, multiple(room), {name: (n, GANG) for name, n in waiting.items()})
        held = sum(ledger.held(name).gpu for name in tree.children.get("", ()))
        wanted = demands(tree, waiting, "")
        assert held == min(room, sum(wanted[name] for name in tree.children.get("", ())))


def demands(tree: Tree, waiting: Mapping[str, int], name: str) -> dict[str, float]:
    """Gangs that each queue below may hold at most, by its limit and those below."""
    found: dict[str, float] = {}
    for child in tree.children.get(name, ()):
        below = demands(tree, waiting, child)
        inner = sum(below[c] for c in tree.children.get(child, ()))
        asked = inner if child in tree.children else waiting[child]
        found |= {**below, child: min(asked, tree.queues[child].limit.gpu)}
    return found


def fair_shares(
    queues: Iterable[Queue], wanted: Mapping[str, float], has: float, capacity: float
) -> dict[str, float]:
    """The closed form: quotas first, then what is left by weight, higher priorities before lower ones."""
    rows = [_Row(q, wanted[q.name], q.quota.gpu if q.quota.gpu < UNLIMITED else capacity) for q in queues]
    left = has
    for phase in ("quota", "weight", "rest"):
        for priority in sorted({r.queue.priority for r in rows}, reverse=True):
            chosen = [r for r in rows if r.queue.priority == priority]
            caps, weights = zip(*(r.phase(phase) for r in chosen), strict=True)
            for row, amount in zip(chosen, water(left, caps, weights), strict=True):
                row.got += amount
                left -= amount
    return {r.queue.name: r.got for r in rows}


@dataclass
class _Row:
    queue: Queue
    wanted: float
    quota: float
    got: float = 0.0

    def phase(self, phase: str) -> tuple[float, float]:
        """How much more it may get in this phase, and by which weight."""
        if phase == "quota":
            return min(self.quota, self.wanted), self.quota
        weight = self.queue.weight.gpu
        over = self.wanted - self.got
        if phase == "weight":
            return (over, weight) if weight else (0.0, 0.0)
        return (over, 1.0) if not weight else (0.0, 0.0)


def water(amount: float, caps: Iterable[float], weights: Iterable[float]) -> list[float]:
    """min(cap, level x weight) for each, with the level at which they add up to the amount."""
    rows = list(zip(caps, weights, strict=True))
    level, left = 0.0, amount
    open_rows = sorted((cap / weight, cap, weight) for cap, weight in rows if cap > 0 and weight > 0)
    while open_rows:
        level = left / sum(weight for _, _, weight in open_rows)
        full, cap, _ = open_rows[0]
        if full > level:
            break
        left -= cap
        level = full
        open_rows.pop(0)
    return [min(cap, level * weight) if weight > 0 else 0.0 for cap, weight in rows]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.sampled_from([1, 2, 4])),
        min_size=2,
        max_size=4,
    )
)
def test_queues_that_need_different_mixes_get_equal_dominant_shares_by_weight(
    mixes: list[tuple[int, int, int, int]],
) -> None:
    """DRF's closed form: shares of s per gang and weight w rise together until one resource is used up."""
    capacity = Amounts(2000, 2000, 2000)
    tree = tree_of(Queue(f"q{i}", limit=FREE, weight=Amounts(w, w, w)) for i, (*_, w) in enumerate(mixes))
    needs = [Amounts(*mix[:3]) for mix in mixes]
    ledger = serve(tree, capacity, {f"q{i}": (2000, need) for i, need in enumerate(needs)})
    per_level = [mix[3] / (max(mix[:3]) / 2000) for mix in mixes]  # gangs of each at level 1
    used = [sum(n * mix[r] for n, mix in zip(per_level, mixes, strict=True)) for r in range(3)]
    level = min(2000 / amount for amount in used)
    for i, (gangs, need) in enumerate(zip(per_level, needs, strict=True)):
        got = ledger.held(f"q{i}").gpu / need.gpu
        scraps = (
            8  # less than 8 is left when the widest gang no longer fits; the narrowest takes it one by one
        )
        assert abs(got - level * gangs) <= max(1.0, 0.05 * level * gangs) + scraps, (got, level * gangs)


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ([queue("a"), queue("b")], [30, 30]),
        ([queue("a", weight=2), queue("b")], [40, 20]),
        ([queue("a", quota=50), queue("b")], [55, 5]),
        ([queue("a", quota=90), queue("b", quota=30)], [45, 15]),
        ([queue("a", weight=0), queue("b", limit=40)], [20, 40]),
        ([queue("a", quota=10, priority=200), queue("b", quota=10)], [50, 10]),
        ([queue("a", quota=-1), queue("b")], [60, 0]),
        ([queue("a", limit=5), queue("b")], [5, 55]),
    ],
)
def test_sixty_gangs_are_divided_among_two_queues(queues: list[Queue], expected: list[int]) -> None:
    waiting = {q.name: (60, GANG) for q in queues}
    ledger = serve(tree_of(queues), multiple(60), waiting)
    assert [ledger.held(q.name).gpu for q in queues] == expected


def test_a_gang_within_its_queues_quota_goes_before_an_older_one_over_quota() -> None:
    tree = tree_of([queue("rich", quota=2), queue("poor", quota=2)])
    ledger = Ledger(tree, {"rich": multiple(2)})
    turns = [Turn("rich", (-9, 0, 0.0, ("ns", "old")), GANG), Turn("poor", (0, 0, 5.0, ("ns", "new")), GANG)]
    assert [t.queue for t in in_turn(turns, ledger, multiple(8))] == ["poor", "rich"]


def test_within_a_queue_priority_goes_before_age() -> None:
    tree = tree_of([queue("q")])
    ranks = ((0, 0, 1.0, ("", "a")), (-5, 0, 2.0, ("", "b")), (0, 0, 0.5, ("", "c")))
    turns = [Turn("q", rank, GANG) for rank in ranks]
    found = [t.rank[3][1] for t in in_turn(turns, Ledger(tree, {}), multiple(8))]
    assert found == ["b", "c", "a"]


def test_between_queues_of_equal_claim_the_gang_of_higher_priority_then_the_older_goes_first() -> None:
    tree = tree_of([queue("a"), queue("b")])
    old, new = Turn("b", (0, 0, 1.0, ("", "b")), GANG), Turn("a", (0, 0, 2.0, ("", "a")), GANG)
    assert list(in_turn([new, old], Ledger(tree, {}), multiple(8))) == [old, new]
