"""Gangs with subgroups: the floor of each first, one gang after another, surplus last (rule 16)."""

from dataclasses import replace

from extender.news import SETTLED_SECONDS
from extender.standing import Standing
from extender.surplus import SURPLUS_MOST_SECONDS, SURPLUS_SECONDS
from gangs.pods import Demand, Pod
from gangs.subgroups import Subgroup
from tests.builders import LEVEL, make_loose, make_node, make_pod
from tests.extender.world import START, World, gang

HOST = ("rack",)


def members(gang: str, rows: dict[Subgroup, int], after: str = "", created: float = 0.0) -> list[Pod]:
    """So many Pods of each of these subgroups."""
    demand = Demand(sum(s.min_member for s in rows), min_subgroup=len(rows), required=LEVEL, after=after)
    return [
        make_pod(f"{gang}-{s.name}-{i}", gang=gang, demand=replace(demand, subgroups=(s,)), created=created)
        for s, number in rows.items()
        for i in range(number)
    ]


def base(created: float = 0.0, gang: str = "base") -> list[Pod]:
    """Grove's GS tests: pc-a with one Pod to spare, pc-b 1, pc-c with two to spare."""
    rows = {Subgroup("a", 1): 2, Subgroup("b", 1): 1, Subgroup("c", 1): 3}
    return members(gang, rows, created=created)


def scaled(gang: str = "scaled", after: str = "base", created: float = 1.0) -> list[Pod]:
    return members(gang, {Subgroup("sb", 1): 1, Subgroup("sc", 1): 3}, after, created)


def bound(world: World, gang: str) -> list[str]:
    """The subgroups whose members are bound, a letter or two each."""
    pods = [p for p in world.registry.members(("default", gang)) if p.node]
    return sorted(p.name.split("-")[1] for p in pods)


def carry_out(world: World) -> None:
    """Bind whoever has a seat, until no round grants more."""
    for _ in range(5):
        world.round()
        for pod in list(world.registry.pods.values()):
            if world.seat(pod):
                world.bind(pod)


def test_nothing_is_bound_below_the_minimum_and_one_of_each_at_it() -> None:
    world = World({"a": 2})
    world.update(*base())
    carry_out(world)
    assert bound(world, "base") == []
    world.nodes.update(make_node("a9", "a"))
    carry_out(world)
    assert bound(world, "base") == ["a", "b", "c"]


def test_the_minimum_of_a_scaled_gang_goes_before_the_surplus_of_its_base() -> None:
    world = World({"a": 3})
    world.update(*base(), *scaled())
    carry_out(world)
    for name in ("a8", "a9"):
        world.nodes.update(make_node(name, "a"))
    carry_out(world)
    assert bound(world, "base") == ["a", "b", "c"]
    assert bound(world, "scaled") == ["sb", "sc"]


def test_the_minima_of_all_gangs_go_before_anybodys_surplus_even_in_one_round() -> None:
    world = World({"a": 10})
    world.update(*base(), *base(1.0, "base2"), *scaled(), *scaled("scaled2", "base2"))
    carry_out(world)
    found = [bound(world, gang) for gang in ("base", "base2", "scaled", "scaled2")]
    assert found == [["a", "b", "c"], ["a", "b", "c"], ["sb", "sc"], ["sb", "sc"]]


def anywhere(pods: list[Pod]) -> list[Pod]:
    """The same without a domain: then nothing is kept for the gang while it waits."""
    return [replace(pod, demand=replace(pod.demand, required=())) for pod in pods]


def trickle(world: World, *nodes: str) -> None:
    """Nodes come one by one, half a second apart."""
    for name in nodes:
        world.nodes.update(make_node(name, "a"))
        carry_out(world)
        world.clock.advance(0.5)


def test_room_that_comes_node_by_node_is_left_to_the_gang_that_lacks_its_floor() -> None:
    world = World({"a": 3})
    world.update(*anywhere([*base(), *scaled()]))
    carry_out(world)
    trickle(world, "a8", "a9")
    assert bound(world, "base") == ["a", "b", "c"]
    assert bound(world, "scaled") == ["sb", "sc"]


def test_surplus_takes_what_has_been_free_for_a_while_and_is_not_enough_for_a_floor() -> None:
    world = World({"a": 3})
    world.update(*anywhere([*base(), *scaled()]))
    carry_out(world)
    trickle(world, "a8")
    assert len(bound(world, "base")) == 3
    world.clock.advance(SURPLUS_SECONDS)
    carry_out(world)
    assert len(bound(world, "base")) == 4


def test_surplus_is_not_held_back_for_ever_by_room_that_comes_without_end() -> None:
    world = World({"a": 3})
    world.update(*anywhere([*base(), *members("huge", {Subgroup("h", 99): 99}, created=2.0)]))
    carry_out(world)
    trickle(world, *(f"a{i}" for i in range(10, 10 + int(2 * SURPLUS_MOST_SECONDS) - 2)))
    assert len(bound(world, "base")) == 3
    trickle(world, "a98", "a99", "a100")
    assert len(bound(world, "base")) > 3


def test_surplus_boards_when_nobody_needs_the_room() -> None:
    world = World({"a": 10})
    world.update(*base(), *scaled())
    carry_out(world)
    assert len(bound(world, "base")) == 6
    assert len(bound(world, "scaled")) == 4


def test_a_gang_waits_until_the_one_before_it_is_aboard_and_says_so() -> None:
    world = World({"a": 8})
    world.update(*scaled())
    world.round()
    assert world.standing(("default", "scaled")) is Standing.FOLLOWING
    list(world.news.due(world.clock()))
    world.round(after=SETTLED_SECONDS)
    said = [row.message for row in world.news.due(world.clock())]
    assert said
    assert set(said) == {
        "Gang default/scaled boards once gang default/base, of which no Pod exists, is aboard."
    }
    first = base()
    world.board(*first)
    assert world.standing(("default", "scaled")) is Standing.FOLLOWING
    world.bind(*[p for p in first if world.seat(p)])
    world.round()
    assert len(world.written.grants[-1].seats) >= 2


def test_a_replacement_goes_to_the_rack_of_its_subgroup() -> None:
    world = World({"a": 0})
    for rack in ("r1", "r2"):
        for number in range(3):
            world.nodes.update(make_node(f"{rack}-{number}", "a", labels={"rack": rack}))
    pods = members("llm", {Subgroup("p", 2, required=HOST): 2, Subgroup("d", 2, required=HOST): 2})
    world.board(*pods)
    world.bind(*pods)
    lost, other = (world.registry.pods[p.uid] for p in pods[:2])
    world.pods.drop(lost.uid)
    new = make_pod("llm-p-9", gang="llm", demand=lost.demand, created=START)
    world.board(new)
    assert world.seat(new)[:2] == other.node[:2]


def test_a_gang_whose_subgroup_nobody_has_come_for_yet_gathers_and_says_so() -> None:
    world = World({"a": 8})
    pods = members("llm", {Subgroup("p", 1): 3, Subgroup("d", 2): 2})
    world.board(*pods[:3])
    assert world.standing(("default", "llm")) is Standing.GATHERING
    row = world.rounds.pending["default", "llm"]
    assert "; a subgroup has no member yet." in world.news.sentence(row)
    world.board(pods[3])
    row = world.rounds.pending["default", "llm"]
    assert "4 of 3 members are here; subgroup d has 1 of 2." in world.news.sentence(row)


def test_preemption_that_leaves_a_subgroup_below_its_floor_is_refused() -> None:
    world = World({"a": 8})
    pods = members("llm", {Subgroup("p", 1): 2, Subgroup("d", 1): 1})
    world.board(*pods)
    world.bind(*[p for p in pods if world.seat(p)])
    world.round()
    world.bind(*[p for p in pods if world.seat(p)])
    preemptor = make_pod("other", gang="", gated=False)
    spare, _, only = (p.uid for p in pods)
    assert world.guard.preempt(preemptor, {"a0": [spare], "a2": [only]}) == ["a0"]


def replicas(gang: str, created: float = 0.0) -> list[Pod]:
    """Two subgroups of three, each in a clique; the gang itself may be anywhere."""
    rows = {Subgroup("x", 3, required=LEVEL): 3, Subgroup("y", 3, required=LEVEL): 3}
    return anywhere(members(gang, rows, created=created))


def test_a_clique_is_kept_for_each_subgroup_of_the_head_and_small_gangs_are_served_around_them() -> None:
    world = World({"a": 4, "b": 4, "c": 4})
    world.update(*(make_loose(f"{clique}{i}", node=f"{clique}{i}") for clique in "abc" for i in range(2)))
    world.board(*replicas("big"))
    kept = world.rounds.keeper.kept
    assert kept is not None
    assert set(kept.all) == {(LEVEL, ("a",)), (LEVEL, ("b",))}
    world.board(*gang(2, "small", created=1.0))
    assert [(g.gang[1], g.domain) for g in world.written.grants] == [("small", ("c",))]
    world.board(*gang(2, "later", created=2.0))
    for name in ("u-a0", "u-b0"):
        world.pods.drop(name)
    world.round()
    assert [g.gang[1] for g in world.written.grants] == ["small", "big"]


def test_one_clique_is_kept_for_two_subgroups_that_fit_into_it_together() -> None:
    world = World({"a": 6})
    world.update(make_loose("x", node="a0"))
    world.board(*replicas("big"))
    kept = world.rounds.keeper.kept
    assert kept is not None
    assert kept.all == ((LEVEL, ("a",)),)


def test_nothing_is_kept_for_a_gang_with_a_subgroup_that_could_board_nowhere() -> None:
    world = World({"a": 2, "b": 9})
    world.board(*replicas("big"), *members("huge", {Subgroup("z", 12, required=LEVEL): 12}, created=-1.0))
    assert world.rounds.keeper.kept is None
