"""Which nodes a Pod may use, and whom kube-scheduler may evict."""

from dataclasses import replace

import pytest

from extender.guard import MAX_SCORE, Verdict
from gangs.contract import GPU
from gangs.nodes import Shape
from gangs.pods import Pod
from gangs.sentences import REFUSED_OTHER_NODE, REFUSED_PROMISED, REFUSED_WAITING
from tests.builders import KEY, LEVEL, make_loose, make_members, make_node, make_pod
from tests.extender.world import World

ALL = ["a0", "a1", "a2", "a3"]


def boarding(number: int = 2) -> tuple[World, list[Pod]]:
    world = World()
    members = make_members(number, required=LEVEL, gated=False)
    world.board(*members)
    return world, members


class TestMembers:
    """A member of a gang."""

    def test_it_may_use_its_seat_and_nothing_else(self) -> None:
        world, members = boarding()
        verdict = world.guard.filter(members[0], ALL)
        assert verdict == Verdict(("a0",), dict.fromkeys(ALL[1:], REFUSED_OTHER_NODE))

    def test_without_a_seat_it_may_use_nothing(self) -> None:
        world = World()
        world.board(*make_members(3, floor=4, gated=False))
        verdict = world.guard.filter(world.registry.pods["u-llm-0"], ALL)
        assert verdict == Verdict((), dict.fromkeys(ALL, REFUSED_WAITING))

    def test_one_that_we_do_not_know_may_use_nothing(self) -> None:
        world, _ = boarding()
        assert world.guard.filter(make_pod("new"), ALL) == Verdict((), dict.fromkeys(ALL, REFUSED_WAITING))

    def test_a_namesake_with_another_uid_does_not_inherit_the_seat(self) -> None:
        world, members = boarding()
        verdict = world.guard.filter(replace(members[0], uid="u-other"), ALL)
        assert verdict.passed == ()

    def test_being_asked_without_its_nominated_node_means_that_its_own_filters_refused_it(self) -> None:
        world, members = boarding()
        verdict = world.guard.filter(replace(members[0], nominated="a0"), ["a2", "a3"])
        assert verdict == Verdict((), dict.fromkeys(["a2", "a3"], REFUSED_OTHER_NODE))
        assert not world.store.permit(KEY).boarding
        assert (members[0].uid, "a0") in world.store.avoided(KEY)

    def test_before_its_nomination_is_seen_a_list_without_its_seat_means_nothing(self) -> None:
        world, members = boarding()
        world.guard.filter(members[0], ["a2", "a3"])
        assert world.store.permit(KEY).boarding

    def test_the_texts_do_not_name_gangs_or_numbers(self) -> None:
        assert not any(c.isdigit() for c in REFUSED_WAITING + REFUSED_OTHER_NODE + REFUSED_PROMISED)


class TestLoosePods:
    """A Pod that belongs to no gang."""

    def test_it_gets_what_is_promised_to_nobody(self) -> None:
        world, _ = boarding()
        verdict = world.guard.filter(make_loose("x", 1), ALL)
        assert verdict == Verdict(["a2", "a3"], dict.fromkeys(["a0", "a1"], REFUSED_PROMISED))

    def test_it_may_sit_beside_a_promise_where_both_fit(self) -> None:
        world = World({})
        world.nodes.update(make_node("big", "a", gpus=8))
        world.board(*make_members(1, required=LEVEL))
        assert world.guard.filter(make_loose("x", 4), ["big"]).passed == ["big"]
        assert world.guard.filter(make_loose("y", 5), ["big"]).passed == []

    def test_it_does_not_get_a_node_that_we_do_not_know(self) -> None:
        assert World().guard.filter(make_loose("x"), ["new"]).refused == {"new": REFUSED_PROMISED}

    def test_one_that_asks_for_gpus_stays_out_of_a_kept_clique(self) -> None:
        world = World({"a": 4, "b": 1})
        world.update(make_loose("squatter", node="a0"))
        world.board(*make_members(4, required=LEVEL))
        assert world.rounds.keeper.kept is not None
        nodes = ["a1", "b0"]
        assert world.guard.filter(make_loose("x", 1), nodes).passed == ["b0"]
        assert world.guard.filter(make_loose("web", 0), nodes).passed == nodes


class TestPrioritize:
    """Scores for a loose Pod."""

    def test_nodes_of_no_clique_come_first_then_the_fullest_cliques(self) -> None:
        world = World({"empty": 4, "half": 4})
        world.nodes.update(make_node("plain"))
        world.update(make_loose("x", node="half0"), make_loose("y", node="half1"))
        scores = world.guard.prioritize(make_loose("z"), ["empty0", "half2", "plain", "unknown"])
        assert scores == {"empty0": 0, "half2": 5, "plain": MAX_SCORE, "unknown": MAX_SCORE}

    def test_where_nothing_fits_all_are_alike(self) -> None:
        world = World({"a": 1})
        huge = replace(make_loose("x"), shape=Shape({GPU: 9, "pods": 1}))
        assert world.guard.prioritize(huge, ["a0"]) == {"a0": MAX_SCORE}


class TestPreempt:
    """kube-scheduler asks whether it may evict on one node."""

    @pytest.mark.parametrize(
        ("bound", "floor", "victims", "allowed"),
        [
            (4, 4, 1, False),
            (5, 4, 1, True),
            (6, 4, 2, True),
            (5, 4, 2, False),
            (3, 4, 1, False),
        ],
    )
    def test_a_gang_never_falls_below_its_floor(
        self, bound: int, floor: int, victims: int, allowed: bool
    ) -> None:
        world = World({"a": 8})
        members = make_members(bound, floor=floor, node="a0")
        world.update(*members)
        offered = {"a0": [p.uid for p in members[:victims]]}
        assert world.guard.preempt(make_loose("x"), offered) == (["a0"] if allowed else [])

    def test_each_node_is_judged_by_its_own_victims(self) -> None:
        world = World()
        world.update(make_loose("loose", node="a0"), *make_members(2, node="a1"))
        offered = {"a0": ["u-loose"], "a1": ["u-llm-0"], "a2": [], "a3": ["u-of-another-scheduler"]}
        assert world.guard.preempt(make_loose("x"), offered) == ["a0", "a2", "a3"]

    def test_one_broken_gang_among_the_victims_is_enough(self) -> None:
        world = World()
        world.update(make_loose("loose", 1, node="a0"), *make_members(2, node="a0"))
        assert world.guard.preempt(make_loose("x"), {"a0": ["u-loose", "u-llm-0"]}) == []

    def test_a_member_of_a_gang_preempts_nobody(self) -> None:
        world = World()
        world.update(make_loose("loose", node="a0"))
        assert world.guard.preempt(make_pod(), {"a0": ["u-loose"]}) == []

    def test_a_member_that_boards_counts_as_part_of_its_gang(self) -> None:
        world, members = boarding()
        assert world.guard.preempt(make_loose("x"), {"a0": [members[0].uid]}) == []
