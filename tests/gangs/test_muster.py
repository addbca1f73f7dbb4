"""Who is here, who is missing, and what the gang wants."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gangs.contract import GATE, SIZE_FROM_OWNER
from gangs.muster import muster, natural
from gangs.notes import Note
from gangs.pods import Demand, Plan
from tests.builders import FOREIGN_GATE, KEY, make_gang, make_members, make_owner, make_pod


def test_a_gang_of_nobody_is_none() -> None:
    assert muster(KEY, []) is None
    assert muster(KEY, [make_pod(terminal=True), make_pod("llm-1", terminating=True)]) is None


def test_finished_and_terminating_members_do_not_count() -> None:
    pods = [*make_members(2, floor=4), make_pod("done", terminal=True), make_pod("leaves", terminating=True)]
    gang = make_gang(pods)
    assert [p.name for p in gang.everyone] == ["llm-0", "llm-1"]
    assert not gang.whole


def test_a_gang_is_whole_once_its_floor_is_here() -> None:
    assert not make_gang(make_members(3, floor=4)).whole
    assert make_gang(make_members(4)).whole
    assert make_gang(make_members(4)).missing == 4


def test_a_member_behind_a_gate_of_others_is_not_here_yet() -> None:
    pods = [*make_members(3, floor=4), make_pod("late", gates=(GATE, FOREIGN_GATE), floor=4)]
    gang = make_gang(pods)
    assert [p.name for p in gang.gated] == ["late"]
    assert not gang.whole


def test_once_a_member_is_bound_the_others_board_singly() -> None:
    gang = make_gang([make_pod("llm-0", node="a0", floor=4), make_pod("llm-1", floor=4)])
    assert gang.aboard
    assert gang.whole
    assert gang.missing == 0


def test_a_gang_whose_members_are_all_bound_has_nobody_to_board() -> None:
    assert not make_gang([make_pod(node="a0", floor=1)]).whole


def test_a_bound_member_on_its_way_out_is_no_member_but_its_domain_still_counts() -> None:
    gang = make_gang([make_pod("old", node="a0", terminating=True), *make_members(2)])
    assert [p.name for p in gang.leaving] == ["old"]
    assert not gang.aboard


def test_after_all_earlier_members_are_finished_a_new_one_opens_a_new_generation() -> None:
    old = make_members(4, node="a0", terminal=True)
    young = make_members(3, floor=4, start=4)
    assert not make_gang([*old, *young]).whole
    assert make_gang([*old, *young, *make_members(1, floor=4, start=7)]).whole


@pytest.mark.parametrize(
    ("min_member", "size", "live", "expected"),
    [
        (None, None, None, (1, 1)),
        (4, None, None, (4, 4)),
        (2, 4, None, (2, 4)),
        (None, 4, None, (1, 4)),
        (4, 4, 6, (6, 6)),
        (4, 4, 2, (2, 2)),
        (2, 4, 6, (2, 6)),
        (4, 4, 0, (1, 0)),
    ],
)
def test_the_live_size_of_the_owner_rules_and_a_floor_equal_to_the_size_follows_it(
    min_member: int | None, size: int | None, live: int | None, expected: tuple[int, int]
) -> None:
    gang = make_gang([make_pod(demand=Demand(min_member, size, SIZE_FROM_OWNER))], live)
    assert (gang.floor, gang.size) == expected


def test_the_newest_member_speaks_for_the_gang() -> None:
    note = Note("changed")
    old = make_pod("llm-9", floor=4, required=("zone",), created=1)
    new = make_pod("llm-1", demand=Demand(6, 8, required=("rack",), notes=(note,)), created=2)
    for order in ([old, new], [new, old]):
        gang = make_gang(order)
        assert (gang.floor, gang.size, gang.required, gang.notes) == (6, 8, ("rack",), (note,))


def test_of_members_created_in_the_same_second_the_last_by_name_speaks() -> None:
    pods = [make_pod("llm-10", floor=3), make_pod("llm-9", floor=5)]
    assert make_gang(pods).floor == make_gang(pods[::-1]).floor == 3


def test_a_finished_member_does_not_speak_however_new_it_is() -> None:
    assert make_gang([make_pod("a", floor=2), make_pod("b", floor=9, created=9, terminal=True)]).floor == 2


def test_members_board_in_natural_order() -> None:
    gang = make_gang(make_members(12)[::-1])
    assert [p.name for p in gang.ready] == [f"llm-{i}" for i in range(12)]


@example("x²", "x2")
@given(st.text(), st.text())
def test_any_two_names_can_be_ordered(one: str, other: str) -> None:
    assert (
        (natural(one) < natural(other)) or (natural(other) < natural(one)) or natural(one) == natural(other)
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_in_names_count_as_numbers(one: int, other: int) -> None:
    assert (natural(f"llm-{one}-x") < natural(f"llm-{other}-x")) == (one < other)


def test_people_know_the_gang_by_the_controller_that_its_members_share() -> None:
    owner = make_owner("mine")
    assert make_gang([make_pod("a", owner=owner), make_pod("b", owner=owner)]).name == "default/mine"
    assert make_gang([make_pod("a", owner=owner), make_pod("b")]).name == "default/llm"
    assert make_gang([make_pod("a")]).name == "default/llm"


class TestTorn:
    """A boarding that was left unfinished."""

    def test_fewer_than_the_floor_are_bound_and_one_who_was_there_has_no_seat(self) -> None:
        bound = make_members(3, floor=4, node="a0", created=1, bound_at=5)
        plan = Plan("a3", ("a",), 480, "u-llm-3", "0")
        assert make_gang([*bound, make_pod("llm-3", floor=4, created=1, plan=plan)]).torn

    def test_surplus_that_never_had_a_plan_does_not_tear_a_gang_that_lost_a_member(self) -> None:
        bound = make_members(3, floor=4, node="a0", created=1, bound_at=5)
        assert not make_gang([*bound, make_pod("llm-5", floor=4, created=1)]).torn

    def test_a_younger_replacement_of_a_lost_member_does_not_tear_the_gang(self) -> None:
        bound = make_members(3, floor=4, node="a0", created=1, bound_at=5)
        plan = Plan("a3", ("a",), 480, "u-llm-3", "0")
        assert not make_gang([*bound, make_pod("llm-3", floor=4, created=60, plan=plan)]).torn

    def test_surplus_without_a_seat_does_not_tear_the_gang(self) -> None:
        bound = make_members(4, node="a0", created=1, bound_at=5)
        assert not make_gang([*bound, make_pod("llm-4", floor=4, created=1)]).torn

    def test_a_gang_of_which_nobody_is_bound_is_not_torn(self) -> None:
        assert not make_gang(make_members(4)).torn
