"""Planning rounds: who may board now, and where."""

from dataclasses import replace

import pytest

from extender.rounds import SETTLE_MOST_SECONDS, SETTLE_SECONDS
from extender.standing import Standing
from gangs.contract import GATE, SIZE_FROM_PARTITION
from gangs.nodes import Taint
from gangs.notes import Note
from gangs.permits import BOARDING_SECONDS, QUIET_SECONDS, Arrived
from gangs.pods import Demand, Plan, Pod
from tests.builders import FOREIGN_GATE, KEY, LEVEL, make_loose, make_members, make_node, make_pod
from tests.extender.world import START, World, gang


def test_a_whole_gang_is_granted_at_once_with_seats_in_one_clique() -> None:
    world = World({"a": 3, "b": 6})
    world.board(*gang(4))
    (grant,) = world.written.grants
    assert grant.gang == KEY
    assert grant.domain == ("b",)
    assert sorted(grant.seats) == ["llm-0", "llm-1", "llm-2", "llm-3"]
    assert len(set(grant.seats.values())) == 4
    assert grant.deadline == START + BOARDING_SECONDS
    assert world.standing() is None


def test_a_gathering_gang_gets_nothing_until_its_last_member_comes() -> None:
    world = World()
    members = gang(4)
    world.board(*members[:3])
    assert world.standing() is Standing.GATHERING
    world.board(members[3])
    assert len(world.written.grants) == 1


def test_a_member_behind_a_gate_of_others_is_waited_for() -> None:
    world = World()
    members = gang(4)
    world.board(*members[:3], replace(members[3], gates=(GATE, FOREIGN_GATE)))
    assert world.standing() is Standing.GATHERING
    world.board(members[3])
    assert len(world.written.grants) == 1


def test_a_gang_that_does_not_fit_gets_nothing_and_boards_when_room_comes() -> None:
    world = World()
    world.board(make_loose("squatter", node="a0"), *gang(4))
    assert world.standing() is Standing.WAITING
    assert world.written.grants == []
    world.pods.drop("u-squatter")
    world.round()
    assert len(world.written.grants) == 1


def test_granted_seats_are_nobody_elses() -> None:
    world = World({"a": 6})
    world.board(*gang(4), *gang(4, "other"))
    assert len(world.written.grants) == 1
    assert world.standing(("default", "other")) is Standing.WAITING


def test_a_round_without_news_plans_nothing_anew() -> None:
    world = World()
    world.board(*gang(5))
    planned = []
    world.rounds._planner = lambda boarding, room, kept: planned.append(boarding)
    world.round()
    assert planned == []
    world.update(make_loose("new", node="a0"))
    world.pods.drop("u-new")
    world.round()
    assert len(planned) == 1


class TestPartition:
    """Members of an NVCF partition, whose number nobody has written down."""

    def members(self, number: int, start: int = 0) -> list[Pod]:
        demand = Demand(1, 1, SIZE_FROM_PARTITION, LEVEL)
        return make_members(number, start=start, demand=demand, partition_index="0")

    def test_it_is_granted_after_two_seconds_without_news(self) -> None:
        world = World()
        world.board(*self.members(2))
        assert world.standing() is Standing.GATHERING
        world.round(after=SETTLE_SECONDS - 0.1)
        assert world.standing() is Standing.GATHERING
        world.round(after=0.1)
        assert len(world.written.grants) == 1

    def test_each_new_member_starts_the_wait_anew_for_ten_seconds_at_most(self) -> None:
        world = World({"a": 18})
        for second in range(int(SETTLE_MOST_SECONDS)):
            world.board(*self.members(1, start=second))
            assert world.standing() is Standing.GATHERING
            world.clock.advance(1)
        world.board(*self.members(1, start=17))
        assert len(world.written.grants) == 1

    def test_an_owner_that_comes_or_changes_counts_as_news(self) -> None:
        world = World()
        world.board(*self.members(1))
        world.clock.advance(1.5)
        world.registry.owner_changed("default", world.clock())
        world.round(after=1.5)
        assert world.standing() is Standing.GATHERING
        world.round(after=0.5)
        assert len(world.written.grants) == 1

    def test_who_joins_a_gang_that_is_aboard_does_not_wait(self) -> None:
        world = World()
        first = self.members(1)
        world.board(*first)
        world.round(after=SETTLE_SECONDS)
        world.bind(*first)
        world.board(*self.members(1, start=1))
        assert len(world.written.grants) == 2


class TestRestart:
    """The first round after a start takes over what was written before."""

    def planned(self, number: int, deadline: float, uid: str = "") -> list[Pod]:
        members = gang(number, gates=())
        return [
            replace(p, plan=Plan(f"b{i}", ("b",), deadline, uid or p.uid, "0"), nominated=f"b{i}")
            for i, p in enumerate(members)
        ]

    def test_plans_in_force_are_adopted_with_their_deadline(self) -> None:
        world = World({"a": 4, "b": 6})
        members = self.planned(4, START + 77)
        world.board(*members)
        assert world.seats(*members) == ["b0", "b1", "b2", "b3"]
        assert world.written.grants[0].deadline == START + 77

    def test_another_plan_in_their_place_gets_a_deadline_of_its_own(self) -> None:
        world = World({"a": 4, "b": 4})
        world.nodes.update(make_node("b0", "b", cordoned=True))
        world.board(*self.planned(4, START + 5))
        assert world.written.grants[0].domain == ("a",)
        assert world.written.grants[0].deadline == START + BOARDING_SECONDS

    def test_plans_past_their_deadline_are_made_anew(self) -> None:
        world = World({"a": 4, "b": 6})
        world.board(*self.planned(4, START - 1))
        assert world.written.grants[0].domain == ("a",)
        assert world.written.grants[0].deadline == START + BOARDING_SECONDS

    def test_a_plan_that_was_copied_from_another_pod_is_ignored(self) -> None:
        world = World({"a": 4, "b": 6})
        world.board(*self.planned(4, START + 77, uid="somebody"))
        assert world.written.grants[0].domain == ("a",)

    def test_later_rounds_believe_no_annotation(self) -> None:
        world = World({"a": 4, "b": 6})
        world.round()
        world.board(*self.planned(4, START + 77))
        assert world.written.grants[0].domain == ("a",)


class TestHeld:
    """A gang whose wish can't be understood."""

    def test_it_waits_until_the_note_no_longer_holds(self) -> None:
        world = World()
        note = Note("no such Topology", blocking=True, topology="t", level="x")
        world.board(make_pod(demand=Demand(1, 1, notes=(note,))))
        assert world.standing() is Standing.HELD
        world.lifted.add("t")
        world.round()
        assert len(world.written.grants) == 1

    def test_a_plain_note_holds_nobody(self) -> None:
        world = World()
        world.board(make_pod(demand=Demand(1, 1, notes=(Note("by the way"),))))
        assert len(world.written.grants) == 1


class TestSurplus:
    """Members over the floor."""

    def test_they_board_with_the_floor_where_there_is_room(self) -> None:
        world = World({"a": 6})
        world.board(*gang(6, floor=4))
        assert len(world.written.grants[0].seats) == 6

    def test_those_who_come_later_board_singly_in_the_same_clique(self) -> None:
        world = World({"a": 6, "b": 9})
        members = gang(6, floor=4)
        world.board(*members[:4])
        world.bind(*members[:4])
        world.board(members[4])
        world.board(members[5])
        assert [g.domain for g in world.written.grants] == [("a",)] * 3
        assert world.store.permit(KEY).released

    def test_they_wait_while_the_floor_is_still_boarding(self) -> None:
        world = World({"a": 8})
        members = gang(8, floor=4)
        world.board(*members[:4])
        world.board(*members[4:])
        assert len(world.written.grants) == 1

    async def test_they_wait_while_the_floor_is_released_and_nobody_of_it_bound(self) -> None:
        world = World({"a": 8})
        members = gang(8, floor=4)
        world.board(*members[:4])
        for member in members[:4]:
            world.store.apply(KEY, Arrived(member.uid))
        world.board(*members[4:])
        assert len(world.written.grants) == 1
        assert world.store.permit(KEY).released
        world.bind(members[0])
        world.round()
        assert len(world.written.grants) == 2

    def test_a_member_behind_a_gate_of_others_holds_up_nobody_else(self) -> None:
        world = World({"a": 6})
        members = gang(4)
        late = make_pod("late", gates=(GATE, FOREIGN_GATE), floor=4, required=LEVEL)
        world.board(*members, late)
        assert len(world.written.grants) == 1
        world.bind(members[0])
        world.round()
        assert world.standing() is Standing.GATHERING
        assert world.rounds.keeper.kept is None


class TestBackOff:
    """After a cancelled boarding."""

    def test_the_next_begins_after_a_pause_and_avoids_the_node_for_all_equals(self) -> None:
        world = World({"a": 5})
        members = gang(2)
        world.board(*members)
        assert world.seat(members[0]) == "a0"
        world.store.lose(world.registry.pods[members[0].uid], "no disk")
        world.round()
        assert world.standing() is Standing.BACKING_OFF
        world.round(after=0.5)
        assert "a0" not in world.seats(*members)
        assert len(world.written.grants) == 2

    def test_only_the_refused_member_avoids_the_node_where_the_gang_fits_no_other_way(self) -> None:
        world = World({"a": 2})
        members = gang(2)
        world.board(*members)
        world.store.lose(world.registry.pods[members[0].uid], "no disk")
        world.round(after=0.5)
        assert world.seats(*members) == ["a1", "a0"]

    def test_a_boarding_without_news_for_a_minute_is_cancelled_and_planned_anew(self) -> None:
        world = World()
        world.board(*gang(4))
        world.round(after=QUIET_SECONDS)
        assert world.standing() is Standing.BACKING_OFF
        assert world.store.last_failure[KEY] == "not every member reached the barrier in time"
        world.round(after=0.5)
        assert len(world.written.grants) == 2


@pytest.mark.parametrize(
    "node", [make_node("a0", "a", cordoned=True), make_node("a0", "a", taints=[Taint("x", "", "NoExecute")])]
)
def test_a_gang_that_waits_for_a_node_boards_as_soon_as_it_admits_pods(node: object) -> None:
    world = World()
    world.nodes.update(node)  # type: ignore[arg-type]
    world.board(*gang(4))
    assert world.written.grants == []
    world.nodes.update(make_node("a0", "a"))
    world.round()
    assert len(world.written.grants) == 1
