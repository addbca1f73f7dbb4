"""The head of the queue, and the clique that is kept for it."""

from extender.standing import Standing
from gangs.planner import Kept
from tests.builders import LEVEL, make_loose, make_node, make_owner
from tests.extender.world import World, gang


class TestHead:
    """The first whole gang that does not fit has a clique kept for it."""

    def world(self) -> World:
        """Two cliques, each with one node taken, and a gang at the head that needs a whole one."""
        world = World({"a": 4, "b": 4})
        world.update(make_loose("x", node="a0"), make_loose("y", node="b0"), make_loose("z", node="b1"))
        world.board(*gang(4, "big"))
        return world

    def test_it_keeps_the_roomiest_clique_and_others_are_served_around_it(self) -> None:
        world = self.world()
        assert world.rounds.keeper.kept == Kept(LEVEL, ("a",), "default/big")
        world.board(*gang(2, "small", created=1))
        assert world.written.grants[0].domain == ("b",)

    def test_nobody_else_gets_into_it_however_long_the_head_waits(self) -> None:
        world = self.world()
        world.board(*gang(3, "small", created=1))
        assert world.standing(("default", "small")) is Standing.WAITING
        world.pods.drop("u-x")
        world.round()
        assert [g.gang for g in world.written.grants] == [("default", "big")]
        assert world.rounds.keeper.kept == Kept(LEVEL, ("b",), "default/small")

    def test_a_more_urgent_gang_becomes_the_head(self) -> None:
        world = self.world()
        world.board(*gang(4, "urgent", created=9, priority=5))
        assert world.rounds.keeper.kept == Kept(LEVEL, ("a",), "default/urgent")

    def test_a_more_urgent_gang_may_have_what_is_kept_for_one_behind_it_in_the_same_round(self) -> None:
        world = self.world()
        world.board(*gang(3, "urgent", created=9, priority=5))
        assert [(g.gang, g.domain) for g in world.written.grants] == [(("default", "urgent"), ("a",))]

    def test_the_next_behind_the_head_boards_in_the_round_in_which_the_head_vanishes(self) -> None:
        world = self.world()
        world.board(*gang(3, "small", created=1))
        for member in gang(4, "big"):
            world.pods.drop(member.uid)
        world.round()
        assert [g.gang for g in world.written.grants] == [("default", "small")]

    def test_a_namesake_of_another_kind_does_not_get_what_is_kept(self) -> None:
        world = World({"a": 4})
        world.update(make_loose("x", node="a0"))
        world.board(*gang(4, "one", owner=make_owner("llm", "StatefulSet")))
        world.board(*gang(2, "two", owner=make_owner("llm", "Job"), created=1))
        assert world.written.grants == []
        assert world.standing(("default", "two")) is Standing.WAITING

    def test_a_clique_that_can_hold_the_head_no_longer_is_exchanged(self) -> None:
        world = self.world()
        world.nodes.update(make_node("a1", "a", cordoned=True))
        world.round()
        assert world.rounds.keeper.kept == Kept(LEVEL, ("b",), "default/big")

    def test_a_clique_that_is_emptied_while_the_kept_one_is_not_takes_its_place(self) -> None:
        """Both are full when the head comes, and who runs in the one that is kept never ends."""
        world = World({"a": 2, "b": 2})
        busy = [make_loose(f"busy-{node}", node=node) for node in ("a0", "a1", "b0", "b1")]
        world.update(*busy)
        world.board(*gang(2, "big"))
        assert world.rounds.keeper.kept == Kept(LEVEL, ("a",), "default/big")
        world.update(*gang(1, "small", created=1))
        for number in (2, 3):
            world.pods.drop(busy[number].uid)
            world.round()
        assert [(g.gang, g.domain) for g in world.written.grants] == [(("default", "big"), ("b",))]

    def test_a_kept_clique_that_lost_a_node_is_exchanged(self) -> None:
        world = self.world()
        world.room.drop_node("a1")
        world.round()
        assert world.rounds.keeper.kept == Kept(LEVEL, ("b",), "default/big")

    def test_the_kept_clique_stays_the_same_while_no_other_has_more_room(self) -> None:
        world = self.world()
        world.pods.drop("u-y")
        world.round()
        assert world.rounds.keeper.kept == Kept(LEVEL, ("a",), "default/big")

    def test_a_clique_that_others_fill_up_is_left_for_a_roomier_one(self) -> None:
        world = self.world()
        world.update(make_loose("x2", node="a1"), make_loose("x3", node="a2"))
        world.pods.drop("u-y")
        world.round()
        assert world.rounds.keeper.kept == Kept(LEVEL, ("b",), "default/big")

    def test_surplus_that_finds_no_room_keeps_nothing(self) -> None:
        world = World({"a": 3, "b": 4})
        members = gang(4, "elastic", floor=3)
        world.update(make_loose("y", node="b0"))
        world.board(*members)
        world.bind(*members[:3])
        world.board(*gang(4, "big", created=1))
        assert world.standing(("default", "elastic")) is Standing.WAITING
        assert world.rounds.keeper.kept == Kept(LEVEL, ("b",), "default/big")

    def test_a_gang_that_fits_nowhere_even_when_empty_keeps_nothing(self) -> None:
        world = World({"a": 4})
        world.board(*gang(5, "big"), *gang(4, "small", created=1))
        assert world.rounds.keeper.kept is None
        assert [g.gang for g in world.written.grants] == [("default", "small")]
