"""What people read: the very words, and never a line per clique."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs import sentences
from gangs.contract import GATE, GPU
from gangs.muster import Muster
from gangs.notes import Note
from gangs.planner import Boarding, Rejection, explain
from gangs.pods import Demand
from gangs.room import Seat
from gangs.shortage import Shortage
from tests.builders import (
    FOREIGN_GATE,
    GIB,
    LEVEL,
    candidates,
    make_gang,
    make_members,
    make_node,
    make_owner,
    make_pod,
    make_room,
    make_shape,
)


def lacking(have: int, need: int, *blockers: tuple[str, int], **rest: object) -> Rejection:
    facts = {"level": LEVEL, "domain": ("c0003",), "each": {GPU: 4, "pods": 1}, "whole_nodes": True, **rest}
    return Rejection(Shortage(have=have, need=need, blockers=blockers, **facts))  # type: ignore[arg-type]


def whole(number: int) -> Muster:
    return make_gang(make_members(number, required=LEVEL, owner=make_owner("llm")))


def test_missing_members_are_counted() -> None:
    gang = make_gang(make_members(3, floor=4))
    assert sentences.gathering(gang) == (
        "Gang default/llm: 3 of 4 members are here; waiting for 1 more Pod to be created."
    )


def test_members_behind_gates_of_others_are_counted_with_the_gates_names() -> None:
    gated = [make_pod(f"g{i}", gates=(GATE, FOREIGN_GATE), floor=6) for i in range(2)]
    assert sentences.gathering(make_gang([*make_members(1, floor=6), *gated])) == (
        f"Gang default/llm: 1 of 6 members are here; 2 Pods held by scheduling gate {FOREIGN_GATE}; "
        "waiting for 3 more Pods to be created."
    )


def test_the_nearest_clique_and_what_it_lacks() -> None:
    rejection = lacking(15, 18, ("cordoned", 2), ("taken by job-7", 1))
    assert sentences.waiting(whole(18), rejection) == (
        "Gang default/llm: 18 of 18 members are here; needs 18 free nodes with 4 GPUs in one "
        "nvidia.com/gpu.clique. Closest: c0003 has 15 (2 cordoned, 1 taken by job-7). "
        "What would help: room on 3 more nodes."
    )


def test_members_that_share_nodes_need_room_rather_than_nodes() -> None:
    rejection = lacking(1, 2, whole_nodes=False, each={GPU: 1, "cpu": 500, "memory": 3 * GIB // 2, "pods": 1})
    assert sentences.waiting(whole(2), rejection) == (
        "Gang default/llm: 2 of 2 members are here; needs room for 2 Pods with 1 GPU, 0.5 CPU, 1.5 GiB each "
        "in one nvidia.com/gpu.clique. Closest: c0003 has 1. What would help: room for 1 more Pod."
    )


def test_other_devices_are_named_in_full() -> None:
    rejection = lacking(0, 1, level=(), domain=(), each={"nvidia.com/pgpu": 8, "pods": 1})
    assert sentences.waiting(whole(1), rejection).endswith(
        "needs 1 free node with 8 nvidia.com/pgpu. The cluster has 0. What would help: room on 1 more node."
    )


def test_pods_that_ask_for_nothing_need_a_place() -> None:
    rejection = lacking(0, 1, level=(), domain=(), each={"pods": 1}, whole_nodes=False)
    assert "room for 1 Pod with a free Pod place each" in sentences.waiting(whole(1), rejection)


@pytest.mark.parametrize(
    ("blockers", "remedy"),
    [
        ([("taken by a", 2), ("taken by b", 1)], "3 taken nodes coming free"),
        ([("cordoned", 5), ("taken by b", 1)], "uncordoning 3 nodes"),
        ([("tainted", 3)], "tolerating the taint of 3 nodes, or removing it"),
        ([("not ready", 9)], "room on 3 more nodes"),
    ],
)
def test_the_one_thing_that_would_do_is_named(blockers: list[tuple[str, int]], remedy: str) -> None:
    text = sentences.waiting(whole(18), lacking(15, 18, *blockers))
    assert text.endswith(f"). What would help: {remedy}.")


def test_a_gang_that_no_clique_could_hold_is_told_so_instead() -> None:
    room = make_room({"a": 4, "b": 6})
    room.put_node(make_node("b0", "b", cordoned=True))
    text = sentences.waiting(whole(7), explain(Boarding(candidates(7), 7, LEVEL), room))
    assert text.endswith(
        "Closest: b has 5 (1 cordoned). No nvidia.com/gpu.clique holds more than 6 even when empty. "
        "What would help: fewer members at once, or a wider level."
    )
    text = sentences.waiting(whole(6), explain(Boarding(candidates(6), 6, LEVEL), room))
    assert text.endswith("(1 cordoned). What would help: uncordoning 1 node.")


def test_nothing_is_said_of_the_largest_clique_where_members_differ() -> None:
    members = (*candidates(2), *candidates(1, make_shape(1)))
    found = explain(Boarding(members, 3, LEVEL), make_room({"a": 1}))
    assert found.largest is None


def test_a_label_that_no_node_has_is_named() -> None:
    assert sentences.waiting(whole(2), Rejection(None)) == (
        "Gang default/llm: 2 of 2 members are here; they need nodes with label nvidia.com/gpu.clique, "
        "and no node has it."
    )


def test_the_gang_ahead_is_named() -> None:
    near = lacking(1, 2).nearest
    assert sentences.waiting(whole(2), Rejection(near, "default/big")).endswith(
        " Room elsewhere is kept for gang default/big, which is ahead in the queue."
    )


def test_blocking_notes_are_told_and_others_not() -> None:
    notes = (Note("no such Topology", blocking=True), Note("by the way"), Note("bad number.", blocking=True))
    gang = make_gang([make_pod(demand=Demand(notes=notes))])
    assert sentences.held(gang) == "Gang default/llm can't board: no such Topology. bad number."


def test_a_cancelled_boarding_says_why() -> None:
    assert sentences.backing_off(whole(2), "llm-1 on a0: no disk") == (
        "Gang default/llm: boarding was cancelled (llm-1 on a0: no disk); it is tried again shortly."
    )


@pytest.mark.parametrize(("evicted", "ending"), [(True, "board elsewhere."), (False, "to free the gang.")])
def test_a_torn_gang_is_told_what_happens_to_it(evicted: bool, ending: str) -> None:
    gang = make_gang(
        [*make_members(3, floor=4, node="a0", required=LEVEL), make_pod("x", floor=4, required=LEVEL)]
    )
    text = sentences.torn(gang, evicted)
    assert "3 of 4 members are bound" in text
    assert text.endswith(ending)


def test_a_thousand_nodes_make_no_longer_a_sentence_than_ten() -> None:
    room = make_room({f"c{i}": 10 for i in range(100)})
    for number, name in enumerate(list(room.nodes)):
        if number % 3:
            room.take(f"u{number}", Seat(name, {GPU: 4, "pods": 1}, f"job-{number}"))
        else:
            room.put_node(make_node(name, f"c{number // 10}", cordoned=True))
    boarding = Boarding(candidates(18), 18, LEVEL)
    text = sentences.waiting(whole(18), explain(boarding, room))
    assert len(text) < 350
    assert text.count("Closest") == 1
    assert "taken by others" in text


@given(st.lists(st.tuples(st.text(min_size=1, max_size=63), st.integers(1, 1000)), max_size=1000))
def test_no_number_of_blockers_makes_the_sentence_longer_than_an_event_may_be(
    blockers: list[tuple[str, int]],
) -> None:
    assert len(sentences.waiting(whole(2), lacking(1, 2, *blockers))) <= 1024


def test_what_a_subgroup_lacks_is_said_where_the_gang_as_a_whole_would_find_room() -> None:
    text = sentences.waiting(whole(4), replace(lacking(2, 3), part="prefill"))
    assert "; its subgroup prefill needs 3 free nodes with 4 GPUs in one" in text
    text = sentences.waiting(whole(4), replace(lacking(4, 4), crowded=True))
    assert text.endswith("Each of its subgroups would find room there, but not all of them at once.")
