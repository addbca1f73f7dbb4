"""Labels that vanish for a while move no gang: a DRA driver's restart takes the clique's label off nodes."""

from dataclasses import replace

import pytest

from extender.standing import Standing
from gangs.pods import Plan
from tests.builders import make_node
from tests.extender.world import World, gang


def blink(world: World, clique: str, *, on: bool) -> None:
    names = [name for name in world.room.nodes if name.startswith(clique)]
    for name in names:
        world.nodes.update(make_node(name, clique if on else ""))


@pytest.fixture
def world() -> World:
    """A gang of three runs in b; one of its members was just replaced."""
    world = World({"a": 6, "b": 4})
    pods = gang(3)
    world.board(*pods)
    world.bind(*pods)
    assert world.written.grants[-1].domain == ("b",)
    return world


def replaced(world: World) -> None:
    world.pods.drop("u-llm-2")
    late = replace(gang(3)[2], uid="u-new", created=99.0)
    world.update(late)
    world.round()


def test_a_replacement_waits_for_the_label_of_its_gangs_clique_to_come_back(world: World) -> None:
    blink(world, "b", on=False)
    replaced(world)
    assert (world.standing(), len(world.written.grants)) == (Standing.WAITING, 1)
    sentence = world.news.sentence(world.rounds.pending["default", "llm"])
    assert sentence.endswith("the others run in b, and no node has that nvidia.com/gpu.clique label now.")
    blink(world, "b", on=True)
    world.round()
    assert world.written.grants[-1].domain == ("b",)


def test_nodes_that_have_kept_the_label_take_it_at_once(world: World) -> None:
    taken = {seat.node for seat in world.room.seats.values()}
    for name in taken:
        world.nodes.update(make_node(name))
    replaced(world)
    (node,) = world.written.grants[-1].seats.values()
    assert node.startswith("b")
    assert node not in taken


def test_a_node_that_came_into_another_clique_counts_there(world: World) -> None:
    """After a reboot the fabric manager may number cliques anew: kube-scheduler goes by what is there now."""
    for name in ("b0", "b1", "b2", "b3"):
        world.nodes.update(make_node(name))
        world.nodes.update(make_node(name, "c"))
    replaced(world)
    assert world.written.grants[-1].domain == ("c",)


def test_after_a_restart_the_plans_on_the_pods_say_where_the_gang_is() -> None:
    world = World({"a": 6, "b": 4})
    blink(world, "b", on=False)
    plan = Plan("b0", ("b",), 0.0, "u-llm-0", "7")
    seated = [replace(p, node=f"b{i}", gates=()) for i, p in enumerate(gang(3)[:2])]
    world.update(replace(seated[0], plan=plan), seated[1], gang(3)[2])
    world.round()
    assert (world.standing(), world.written.grants) == (Standing.WAITING, [])


def test_a_node_made_anew_under_the_same_name_remembers_nothing(world: World) -> None:
    world.room.drop_node("b0")
    world.room.put_node(make_node("b0"))
    known = world.room.with_lost_labels("b0")
    assert known is not None
    assert known.labels == make_node("b0").labels


def test_labels_of_a_node_without_loss_are_its_own(world: World) -> None:
    assert world.room.with_lost_labels("a0") is world.room.nodes["a0"]
    assert world.room.with_lost_labels("nowhere") is None
