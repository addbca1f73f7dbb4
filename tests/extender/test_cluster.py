"""What the watches say, and what it does to permits and room."""

from dataclasses import replace

import pytest

from gangs.contract import GPU, KAI_SCHEDULER_NAME
from gangs.nodes import Node
from gangs.permits import Arrived
from gangs.pods import Plan, Pod
from tests.builders import (
    KEY,
    LEVEL,
    make_loose,
    make_members,
    make_node,
    make_pod,
    node_object,
    pod_object,
)
from tests.extender.world import World


def boarding(number: int = 2, cliques: dict[str, int] | None = None) -> tuple[World, list[Pod]]:
    """A gang with seats, nominated to them."""
    world = World({"a": 4, "b": 4} if cliques is None else cliques)
    world.board(*make_members(number, required=LEVEL))
    members = [replace(p, nominated=world.seat(p), gates=()) for p in world.registry.pods.values()]
    world.update(*members)
    return world, members


class TestPods:
    """The Pod watch."""

    def test_a_pod_of_another_scheduler_takes_room_and_forms_no_gang(self) -> None:
        world = World()
        world.update(*make_members(2, node="a0", scheduler=KAI_SCHEDULER_NAME))
        assert world.room.free(world.room.nodes["a0"])[GPU] == -4
        assert list(world.registry.keys) == []

    def test_a_terminating_pod_takes_room_until_it_is_gone_and_a_finished_one_does_not(self) -> None:
        world = World()
        pod = make_loose("x", node="a0")
        world.update(replace(pod, terminating=True))
        assert world.room.free(world.room.nodes["a0"])[GPU] == 0
        world.update(replace(pod, terminal=True))
        assert world.room.free(world.room.nodes["a0"])[GPU] == 4

    def test_a_cleared_nomination_means_that_the_seat_is_lost(self) -> None:
        world, members = boarding()
        world.update(replace(members[0], nominated=""))
        assert not world.store.permit(KEY).boarding
        assert (members[0].uid, members[0].nominated) in world.store.avoided(KEY)
        assert "kube-scheduler found the node unfit" in world.store.last_failure[KEY]

    def test_a_nomination_that_was_never_there_is_not_missed(self) -> None:
        world, members = boarding()
        world.update(replace(members[0], nominated="elsewhere"))
        world.update(replace(members[0], nominated=""))
        assert world.store.permit(KEY).boarding

    def test_a_cleared_nomination_of_one_who_stands_at_the_barrier_means_nothing(self) -> None:
        world, members = boarding()
        world.store.apply(KEY, Arrived(members[0].uid))
        world.update(replace(members[0], nominated=""))
        assert world.store.permit(KEY).boarding

    def test_word_from_before_our_binding_does_not_unbind(self) -> None:
        world, members = boarding()
        seat = world.seat(members[0])
        world.pods.bound(members[0], seat)
        world.update(replace(members[0], nominated=""))
        assert world.registry.pods[members[0].uid].node == seat
        assert world.room.free(world.room.nodes[seat])[GPU] == 0
        assert world.seat(members[1])

    @pytest.mark.parametrize("end", ["terminating", "terminal", "gone"])
    def test_a_member_that_ends_while_boarding_cancels_it_and_frees_all_seats(self, end: str) -> None:
        world, members = boarding()
        if end == "gone":
            world.pods.drop(members[0].uid)
        else:
            world.update(replace(members[0], **{end: True}))  # type: ignore[arg-type]
        assert not world.store.permit(KEY).boarding
        assert world.room.seats == {}

    def test_a_member_recreated_under_the_same_name_is_a_new_member(self) -> None:
        world, members = boarding()
        world.pods.drop(members[0].uid)
        world.update(replace(members[0], uid="u-new", nominated=""))
        world.round(after=1)
        assert world.store.permit(KEY).seats.keys() == {"u-new", members[1].uid}

    def test_a_member_bound_elsewhere_by_others_gives_its_seat_back(self) -> None:
        world, members = boarding()
        seat = world.seat(members[0])
        world.update(replace(members[0], node="b3"))
        assert world.room.free(world.room.nodes[seat])[GPU] == 4
        assert world.room.free(world.room.nodes["b3"])[GPU] == 0

    def test_when_the_last_member_is_gone_the_permit_is_forgotten(self) -> None:
        world, members = boarding()
        for member in members:
            world.pods.drop(member.uid)
        world.round()
        assert KEY not in world.store.permits
        assert world.store.avoided(KEY) == frozenset()
        assert KEY not in world.store.last_failure

    def test_a_pod_that_was_deleted_before_we_heard_of_its_binding_does_not_come_back(self) -> None:
        world, members = boarding()
        seat = world.seat(members[0])
        world.pods.drop(members[0].uid)
        world.pods.bound(members[0], seat)
        assert members[0].uid not in world.registry.pods
        assert world.room.seats == {}

    def test_a_pod_that_is_relabelled_leaves_its_gang(self) -> None:
        world = World()
        world.board(*make_members(2))
        world.update(replace(world.registry.pods["u-llm-0"], gang="other"))
        gang = world.registry.muster(KEY)
        assert gang is not None
        assert [p.name for p in gang.everyone] == ["llm-1"]

    def test_objects_are_read_from_the_wire(self) -> None:
        world = World()
        world.pods.put(pod_object("llm-0"))
        world.pods.put(pod_object("busy", gang="", spec={"nodeName": "a0"}))
        assert world.registry.pods["u-llm-0"].gang == "llm"
        assert world.room.free(world.room.nodes["a0"])[GPU] == 0

    def test_a_plan_that_another_instance_writes_takes_the_seat(self) -> None:
        world, (pod, _) = boarding()
        own = Plan(world.seat(pod), ("a",), 9e9, pod.uid, world.term)
        world.update(replace(pod, plan=own))
        assert world.seat(pod)
        world.update(replace(pod, plan=replace(own, term="8")))
        assert world.seat(pod) == ""
        assert "another instance" in world.store.last_failure[KEY]

    def test_a_plan_of_a_term_that_is_over_takes_nothing(self) -> None:
        world = World({"a": 4})
        old = Plan("a3", ("a",), 9e9, "u-llm-0", "6")
        pod = make_pod(floor=1, required=LEVEL, plan=old)
        world.board(pod)
        world.update(replace(pod, nominated="a3"))
        assert world.seat(pod)


class TestNodes:
    """The Node watch."""

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"cordoned": True}, "the node is cordoned"),
            ({"ready": False}, "the node is not ready"),
            ({"labels": {"nvidia.com/gpu.clique": "b"}}, "the node's nvidia.com/gpu.clique label changed"),
            ({"labels": {}}, "the node's nvidia.com/gpu.clique label changed"),
        ],
    )
    def test_a_promised_node_that_becomes_unfit_means_a_new_plan_at_once(
        self, change: dict[str, object], why: str
    ) -> None:
        world, members = boarding()
        node = world.room.nodes[world.seat(members[0])]
        world.nodes.update(replace(node, **change))  # type: ignore[arg-type]
        assert not world.store.permit(KEY).boarding
        assert world.store.last_failure[KEY] == f"llm-0 on {node.name}: {why}"
        world.round(after=0.5)
        assert len(world.written.grants) == 2
        assert node.name not in world.seats(*members)

    def test_a_promised_node_that_is_deleted_means_a_new_plan_at_once(self) -> None:
        world, members = boarding()
        seat = world.seat(members[0])
        world.nodes.put(node_object(seat))
        world.nodes.drop(f"u-{seat}")
        assert world.store.last_failure[KEY] == f"llm-0 on {seat}: the node was deleted"
        world.round(after=0.5)
        assert seat not in world.seats(*members)

    def test_a_change_that_matters_to_nobody_keeps_the_plan(self) -> None:
        world, members = boarding()
        node = world.room.nodes[world.seat(members[0])]
        world.nodes.update(replace(node, labels={**node.labels, "team": "x"}))
        assert world.store.permit(KEY).boarding

    def test_members_that_sit_already_are_not_troubled_by_a_cordon(self) -> None:
        world, members = boarding()
        world.bind(members[0])
        world.nodes.update(replace(world.room.nodes["a0"], cordoned=True))
        assert world.seat(members[1])

    def test_the_same_node_again_wakes_nobody(self) -> None:
        world = World()
        world.woken = 0
        world.nodes.update(make_node("a0", "a"))
        assert world.woken == 0

    def test_a_node_created_anew_under_the_same_name_survives_the_late_word_of_its_end(self) -> None:
        world = World({})
        world.nodes.put(node_object("n", uid="old"))
        world.nodes.put(node_object("n", uid="new"))
        world.nodes.drop("old")
        assert isinstance(world.room.nodes.get("n"), Node)
        world.nodes.drop("new")
        assert "n" not in world.room.nodes
