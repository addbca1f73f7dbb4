"""Limits: along the whole path, and with room reserved for who is ahead."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.ledger import Excess, Ledger
from gangs.queues.tree import Queue, tree_of


def at_most(gpus: float) -> Amounts:
    return Amounts(gpus, UNLIMITED, UNLIMITED)


def ledger(org: float = 16, a: float = 8, b: float = 8, held: Mapping[str, float] | None = None) -> Ledger:
    """An org with two teams, GPU limits of each, and what the teams hold."""
    queues = (
        Queue("org", limit=at_most(org)),
        Queue("a", "org", limit=at_most(a)),
        Queue("b", "org", limit=at_most(b)),
    )
    return Ledger(tree_of(queues), {name: Amounts(gpus) for name, gpus in (held or {}).items()})


def test_what_a_queue_holds_counts_for_its_ancestors_and_not_for_its_siblings() -> None:
    accounts = ledger(held={"a": 4, "b": 2})
    assert [accounts.held(name).gpu for name in ("org", "a", "b")] == [6, 4, 2]


def test_a_queues_limit_may_be_reached_and_not_exceeded() -> None:
    accounts = ledger()
    accounts.take("a", Amounts(4))
    assert accounts.excess("a", Amounts(4)) is None
    assert accounts.excess("a", Amounts(5)) == Excess("a", "gpu", 4, 0, 5, 8)


def test_the_limit_of_an_ancestor_counts_as_well() -> None:
    accounts = ledger(org=10)
    accounts.take("b", Amounts(8))
    assert accounts.excess("a", Amounts(4)) == Excess("org", "gpu", 8, 0, 4, 10)


def test_a_queue_over_its_limit_still_takes_what_needs_none_of_that_resource() -> None:
    accounts = ledger()
    accounts.take("a", Amounts(12))
    assert accounts.excess("a", Amounts(cpu=1000)) is None
    assert accounts.excess("a", Amounts(1, 1000)) is not None


def test_every_resource_of_a_queue_has_its_limit() -> None:
    accounts = Ledger(tree_of([Queue("q", limit=Amounts(UNLIMITED, 1000, 10))]), {})
    found = [accounts.excess("q", need) for need in (Amounts(9), Amounts(0, 1001), Amounts(0, 0, 11))]
    assert [excess and excess.resource for excess in found] == [None, "cpu", "memory"]


def test_room_below_a_queues_limit_is_reserved_for_who_is_ahead() -> None:
    accounts = ledger()
    accounts.reserve("a", Amounts(6))
    assert accounts.excess("a", Amounts(2)) is None
    assert accounts.excess("a", Amounts(3)) == Excess("a", "gpu", 0, 6, 3, 8)


def test_who_waits_for_its_own_queues_limit_does_not_hold_up_the_sibling_queue() -> None:
    accounts = ledger()
    accounts.take("a", Amounts(8))
    accounts.reserve("a", Amounts(8))
    assert accounts.excess("b", Amounts(8)) is None


def test_who_waits_for_the_ancestors_limit_goes_before_the_sibling_queue() -> None:
    accounts = ledger(org=12)
    accounts.take("b", Amounts(4))
    accounts.take("a", Amounts(2))
    accounts.reserve("a", Amounts(6))
    assert accounts.excess("b", Amounts(1)) == Excess("org", "gpu", 6, 6, 1, 12)


def test_a_need_above_some_queues_limit_is_hopeless() -> None:
    accounts = ledger(org=6)
    assert accounts.hopeless("a", Amounts(7))
    assert not accounts.hopeless("a", Amounts(6))
    excess = accounts.excess("a", Amounts(7))
    assert excess
    assert excess.hopeless


def test_a_queue_that_is_not_in_use_has_no_account() -> None:
    accounts = ledger()
    accounts.take("gone", Amounts(4))
    assert accounts.held("gone") == Amounts()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9), st.booleans()), max_size=30))
def test_whatever_is_taken_by_leave_of_the_ledger_no_queues_limit_is_exceeded(
    steps: list[tuple[str, int, bool]],
) -> None:
    accounts = ledger(org=30, a=20, b=16)
    for queue, gpus, waits in steps:
        if waits:
            accounts.reserve(queue, Amounts(gpus))
        elif accounts.excess(queue, Amounts(gpus)) is None:
            accounts.take(queue, Amounts(gpus))
    assert accounts.held("a").gpu <= 20
    assert accounts.held("b").gpu <= 16
    assert accounts.held("org").gpu <= 30
    assert accounts.held("org") == accounts.held("a") + accounts.held("b")
