"""The tree of queues: who is a leaf, who is out of use, and what people read of it."""

import pytest

from gangs.queues.amounts import Amounts
from gangs.queues.ledger import Excess
from gangs.queues.sentences import flawed, no_queue, over_limit
from gangs.queues.tree import Flaw, Problem, Queue, Tree, tree_of
from tests.builders import make_gang, make_members


def tree(**parents: str) -> Tree:
    """Queues by name, each with its parent."""
    return tree_of(Queue(name, parent) for name, parent in parents.items())


FOREST = tree(
    org="", team="org", lab="org", alone="", lost="nowhere", child="lost", x="y", y="x", z="y", own="own"
)


def test_a_queue_is_a_leaf_if_no_queue_names_it_as_its_parent() -> None:
    assert FOREST.leaves == ("alone", "lab", "team")


def test_a_queues_path_leads_to_its_root() -> None:
    assert FOREST.paths["team"] == ("team", "org")
    assert FOREST.paths.keys() == {"org", "team", "lab", "alone"}


@pytest.mark.parametrize(
    ("queue", "problem", "sentence"),
    [
        ("team", None, ""),
        ("alone", None, ""),
        (
            "teem",
            Problem(Flaw.MISSING, "teem", ("alone", "lab", "team")),
            'queue "teem" does not exist (queues there are: alone, lab, team)',
        ),
        (
            "org",
            Problem(Flaw.INNER, "org", ("lab", "team")),
            'queue "org" has child queues and takes no workloads itself (allowed: lab, team)',
        ),
        (
            "child",
            Problem(Flaw.ORPHAN, "child", ("nowhere",)),
            'queue "child" is out of use, as a parent queue "nowhere" does not exist',
        ),
        (
            "z",
            Problem(Flaw.CYCLE, "z", ("y", "x", "y")),
            'queue "z" is out of use, as its parent queues form a circle: y, x, y',
        ),
        (
            "own",
            Problem(Flaw.CYCLE, "own", ("own", "own")),
            'queue "own" is out of use, as its parent queues form a circle: own, own',
        ),
    ],
)
def test_what_is_wrong_with_a_queue_is_said_in_words(
    queue: str, problem: Problem | None, sentence: str
) -> None:
    found = FOREST.problem(queue)
    assert found == problem
    assert (flawed(found) if found else "") == sentence


def test_the_sentence_of_a_missing_queue_does_not_grow_with_the_number_of_queues() -> None:
    many = tree(**{f"q{i:02}": "" for i in range(20)})
    found = many.problem("q")
    assert found
    assert flawed(found).endswith("(queues there are: q00, q01, q02, q03, q04, q05, q06, q07 and 12 more)")


def test_a_gang_is_told_which_queue_keeps_it_from_boarding() -> None:
    problem = Tree().problem("team")
    assert problem
    assert no_queue(make_gang(make_members(2)), problem) == (
        'Gang default/llm can\'t board: queue "team" does not exist (queues there are: none); '
        "it boards once that is mended."
    )


@pytest.mark.parametrize(
    ("excess", "sentence"),
    [
        (Excess("a", "gpu", 40, 0, 16, 48), 'needs 16 GPUs; queue "a" holds 40 of its limit of 48.'),
        (
            Excess("a", "gpu", 24, 16, 16, 48),
            'needs 16 GPUs; queue "a" holds 24 of its limit of 48, and 16 are kept for gangs ahead of it.',
        ),
        (Excess("a", "cpu", 0, 0, 500, 500), 'needs 0.5 CPUs; queue "a" holds 0 of its limit of 0.5.'),
        (
            Excess("a", "memory", 0, 0, 64e9, 32e9),
            'needs 64 GB of memory, more than the limit of queue "a", 32: it waits until that is raised.',
        ),
    ],
)
def test_a_gang_at_a_queues_limit_is_told_what_is_held_and_what_it_needs(
    excess: Excess, sentence: str
) -> None:
    assert over_limit(make_gang(make_members(2)), excess) == f"Gang default/llm: {sentence}"


def test_amounts_add_up_resource_by_resource() -> None:
    assert Amounts(1, 2, 3) + Amounts(4, 5, 6) == Amounts(5, 7, 9)
    assert Amounts(4, 5, 6) - Amounts(1, 2, 3) == Amounts(3, 3, 3)
    assert not Amounts()
