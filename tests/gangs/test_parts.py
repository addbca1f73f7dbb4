"""Who is in which subgroup, and which members may board together."""

from dataclasses import replace

from gangs.parts import assemble
from gangs.pods import Demand, Pod
from gangs.subgroups import Subgroup
from tests.builders import make_gang, make_pod

LEADER, WORKERS = Subgroup("leader", 1), Subgroup("workers", 2, required=("rack",))
REPLICA = Subgroup("replica", min_subgroup=2, required=("clique",), preferred=("zone", "rack"))
ROWS = [
    ("l", (REPLICA, LEADER)),
    *((f"w{i}", (REPLICA, WORKERS)) for i in range(3)),
    ("r", (Subgroup("router", 1),)),
]


def test_a_gang_is_met_when_each_of_its_subgroups_has_its_floor() -> None:
    gang = assemble(ROWS, None)
    assert gang is not None
    assert gang.least == 4
    assert gang.met({"l", "w0", "w2", "r"})
    assert not gang.met({"w0", "w1", "w2", "r"})
    assert not gang.met({"l", "w0", "r"})
    assert not gang.met({"l", "w0", "w1", "w2"})


def test_parts_keep_what_their_members_said_of_them() -> None:
    gang = assemble(ROWS, None)
    assert gang is not None
    replica, router = gang.parts
    assert (replica.required, replica.preferred, router.required) == (("clique",), "rack", ())
    assert [leaf.name for leaf in gang.leaves] == ["leader", "workers", "router"]
    assert [part.name for part in gang.everything] == ["", "replica", "leader", "workers", "router"]
    assert replica.members == {"l", "w0", "w1", "w2"}


def test_a_subgroup_of_which_nobody_is_here_yet_is_missed_where_their_number_is_known() -> None:
    known = assemble(ROWS[:4], 2)
    assert known is not None
    assert not known.met({"l", "w0", "w1", "w2"})


def test_some_subgroups_are_enough_where_the_gang_says_so() -> None:
    rows = [(f"{segment}{i}", (Subgroup(segment, 2),)) for segment in "abc" for i in range(2)]
    gang = assemble(rows, 2)
    assert gang is not None
    assert gang.least == 4
    assert gang.met({"a0", "a1", "c0", "c1"})
    assert not gang.met({"a0", "a1", "b0", "c0"})


def test_a_subgroup_that_needs_nobody_stands_for_none_that_does() -> None:
    gang = assemble([("a", (Subgroup("a", 1),)), ("z", (Subgroup("z"),))], 2)
    assert gang is not None
    assert not gang.met({"a", "z"})


def test_where_members_disagree_the_newest_is_right() -> None:
    gang = assemble([("old", (Subgroup("g", 1),)), ("new", (Subgroup("g", 2),))], None)
    assert gang is not None
    assert gang.least == 2


def test_members_of_no_subgroup_make_no_parts() -> None:
    assert assemble([("a", ()), ("b", ())], None) is None


def test_relaxed_parts_need_nobody_and_keep_their_domains() -> None:
    gang = assemble(ROWS, None)
    assert gang is not None
    relaxed = gang.relaxed()
    assert relaxed.met(set())
    assert relaxed.parts[0].required == ("clique",)


def test_a_gang_with_too_few_in_one_subgroup_is_not_whole_however_many_are_in_the_other() -> None:
    a, b = Subgroup("a", 1), Subgroup("b", 2)
    lacking = [_member("a-0", a), _member("a-1", a), _member("b-0", b)]
    assert not make_gang(lacking).whole
    whole = make_gang([*lacking, _member("b-1", b)])
    assert whole.whole
    assert whole.floor == 3
    bound = [replace(p, node=f"n-{p.name}") for p in whole.ready]
    assert make_gang(bound).complete
    assert not make_gang(bound[:3]).complete


def _member(name: str, subgroup: Subgroup) -> Pod:
    return make_pod(name, demand=Demand(min_member=3, subgroups=(subgroup,), min_subgroup=2))
