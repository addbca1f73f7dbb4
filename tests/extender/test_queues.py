"""Queues in the planning round: order, limits, and what a missing queue means."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender import wire
from extender.standing import Standing
from gangs.contract import GPU
from gangs.pods import Plan, Pod
from gangs.queues.amounts import UNLIMITED, Amounts
from gangs.queues.tree import Queue
from gangs.sentences import REFUSED_LIMIT, REFUSED_QUEUE
from tests.builders import FOUR_GPUS, GIB, make_loose, make_node, make_shape, pod_object
from tests.extender.world import START, World, gang, settle

FREE = Amounts(UNLIMITED, UNLIMITED, UNLIMITED)
ONE = Amounts(1, 1, 1)


def a_queue(name: str, parent: str = "", limit: float = UNLIMITED, **rest: Any) -> Queue:
    """A queue with a limit on GPUs only."""
    return Queue(name, parent, limit=Amounts(limit, UNLIMITED, UNLIMITED), weight=ONE, **rest)


def a_world(*queues: Queue, cliques: dict[str, int] | None = None) -> World:
    world = World({"a": 8} if cliques is None else cliques)
    for queue in queues:
        world.queues.update(queue)
    return world


def in_queue(queue: str, number: int, name: str, **rest: Any) -> list[Pod]:
    """A gang of so many members, four GPUs each, in that queue."""
    return gang(number, name, queue=queue, **rest)


def granted(world: World) -> list[str]:
    return [grant.gang[1] for grant in world.written.grants]


def sentence(world: World, name: str) -> str:
    return world.news.sentence(world.rounds.pending["default", name])


class TestMissingQueue:
    """A gang that names a queue by which it can't board."""

    def test_it_waits_with_a_sentence_and_boards_once_the_queue_exists(self) -> None:
        world = a_world(a_queue("team-a"))
        world.board(*in_queue("team-b", 2, "llm"))
        assert world.standing() is Standing.NO_QUEUE
        assert sentence(world, "llm") == (
            'Gang default/llm can\'t board: queue "team-b" does not exist (queues there are: team-a); '
            "it boards once that is mended."
        )
        world.queues.update(a_queue("team-b"))
        world.round()
        assert granted(world) == ["llm"]

    def test_a_queue_that_has_got_children_takes_no_more_gangs(self) -> None:
        world = a_world(a_queue("team-a"), a_queue("sub", "team-a"))
        world.board(*in_queue("team-a", 2, "llm"))
        assert world.standing() is Standing.NO_QUEUE
        assert "(allowed: sub)" in sentence(world, "llm")

    def test_it_holds_up_nobody_else_and_keeps_no_domain_from_other_queues(self) -> None:
        world = a_world(a_queue("team-a"))
        world.board(*in_queue("gone", 8, "big"), *in_queue("team-a", 8, "small", created=1))
        assert granted(world) == ["small"]

    def test_where_there_is_no_queue_at_all_gangs_stand_in_one_line(self) -> None:
        world = a_world()
        world.board(*in_queue("team-a", 2, "llm"))
        assert granted(world) == ["llm"]

    def test_a_queue_that_is_created_anew_is_not_forgotten_with_the_old_one(self) -> None:
        world = a_world()
        row = {"metadata": {"name": "team-a", "uid": "1"}}
        world.queues.put(row)
        world.queues.put({"metadata": {"name": "team-a", "uid": "2"}})
        world.queues.drop("1")
        assert "team-a" in world.queues.tree.queues
        world.queues.drop("2")
        assert not world.queues.tree


class TestLimits:
    """No queue ever holds more than its limit."""

    def test_two_gangs_of_one_round_do_not_exceed_the_queues_limit_together(self) -> None:
        world = a_world(a_queue("q", limit=12))
        world.board(*in_queue("q", 2, "one"), *in_queue("q", 2, "two", created=1))
        assert granted(world) == ["one"]
        assert world.standing(("default", "two")) is Standing.OVER_LIMIT
        assert sentence(world, "two") == (
            'Gang default/two: needs 8 GPUs; queue "q" holds 8 of its limit of 12.'
        )

    def test_two_queues_do_not_exceed_their_parent_queues_limit_together(self) -> None:
        world = a_world(a_queue("org", limit=12), a_queue("a", "org"), a_queue("b", "org"))
        world.board(*in_queue("a", 2, "one"), *in_queue("b", 2, "two", created=1))
        assert granted(world) == ["one"]
        assert 'queue "org" holds 8 of its limit of 12' in sentence(world, "two")

    def test_a_gang_boards_as_soon_as_its_queue_has_given_back_enough(self) -> None:
        world = a_world(a_queue("q", limit=8))
        one = in_queue("q", 2, "one")
        world.board(*one, *in_queue("q", 2, "two", created=1))
        world.bind(*one)
        world.round()
        assert granted(world) == ["one"]
        for pod in one:
            world.pods.drop(pod.uid)
        world.round()
        assert granted(world) == ["one", "two"]

    def test_a_limit_that_is_raised_lets_the_queues_gangs_board(self) -> None:
        world = a_world(a_queue("q", limit=4))
        world.board(*in_queue("q", 2, "llm"))
        assert "more than the limit" in sentence(world, "llm")
        world.queues.update(a_queue("q", limit=8))
        world.round()
        assert granted(world) == ["llm"]

    def test_surplus_boards_only_as_far_as_the_queues_limit_allows(self) -> None:
        world = a_world(a_queue("q", limit=12))
        members = in_queue("q", 5, "elastic", floor=2)
        world.board(*members)
        assert len(world.written.grants[0].seats) == 3
        world.bind(*members[:3])
        world.round()
        assert world.standing(("default", "elastic")) is Standing.OVER_LIMIT

    def test_members_that_name_different_queues_count_each_for_its_own(self) -> None:
        world = a_world(a_queue("q", limit=4), a_queue("r", limit=4))
        mixed = [*in_queue("q", 1, "mixed", floor=2), *in_queue("r", 1, "mixed", floor=2, start=1)]
        world.board(*mixed)
        assert granted(world) == ["mixed"]
        assert {name: held.gpu for name, held in world.room.held.items()} == {"q": 4, "r": 4}
        world.board(*in_queue("r", 1, "other", created=1))
        assert world.standing(("default", "other")) is Standing.OVER_LIMIT

    def test_small_gangs_do_not_use_up_what_comes_free_below_the_queues_limit(self) -> None:
        world = a_world(a_queue("q", limit=16))
        runs = in_queue("q", 2, "runs")
        world.board(*runs)
        world.bind(*runs)
        world.board(*in_queue("q", 4, "big", created=1), *in_queue("q", 1, "small", created=2))
        assert granted(world) == ["runs"]
        assert "and 16 are kept for gangs ahead of it" in sentence(world, "small")
        for pod in runs:
            world.pods.drop(pod.uid)
        world.round()
        assert granted(world) == ["runs", "big"]

    def test_a_gang_that_no_clique_could_hold_keeps_no_room_below_the_queues_limit(self) -> None:
        world = a_world(a_queue("q", limit=48))
        world.board(*in_queue("q", 9, "too-big"), *in_queue("q", 4, "fits", created=1))
        assert granted(world) == ["fits"]

    def test_a_gang_above_its_queues_limit_keeps_nothing_from_those_behind_it(self) -> None:
        world = a_world(a_queue("q", limit=8))
        world.board(*in_queue("q", 4, "hopeless"), *in_queue("q", 2, "fits", created=1))
        assert granted(world) == ["fits"]


class TestOrder:
    """Whose turn it is."""

    def test_a_queue_within_its_quota_goes_before_one_over_it(self) -> None:
        world = a_world(a_queue("rich"), a_queue("poor", quota=Amounts(16, 0, 0)), cliques={"a": 4})
        world.board(*in_queue("rich", 4, "first"), *in_queue("poor", 4, "second", created=9))
        assert granted(world) == ["second"]

    def test_the_room_is_divided_among_queues_by_weight(self) -> None:
        heavy = Queue("heavy", limit=FREE, weight=Amounts(3, 3, 3))
        world = a_world(heavy, a_queue("light"))
        gangs = [
            in_queue(queue, 1, f"{queue}-{i}", created=i) for queue in ("heavy", "light") for i in range(8)
        ]
        world.board(*(pod for members in gangs for pod in members))
        assert len(granted(world)) == 8
        assert sum(name.startswith("heavy") for name in granted(world)) == 6

    def test_a_small_gang_of_a_queue_behind_is_served_around_the_head_of_the_queue_ahead(self) -> None:
        world = a_world(a_queue("a", priority=200), a_queue("b"), cliques={"x": 4, "y": 4})
        world.update(
            make_loose("busy-x", node="x0"), make_loose("b1", node="y0"), make_loose("b2", node="y1")
        )
        world.board(*in_queue("a", 4, "big"), *in_queue("b", 3, "small", created=1))
        assert granted(world) == []
        world.board(*in_queue("b", 2, "tiny", created=2))
        assert [(g.gang[1], g.domain) for g in world.written.grants] == [("tiny", ("y",))]

    def test_after_a_restart_a_gang_with_a_plan_in_force_goes_before_other_queues(self) -> None:
        world = a_world(a_queue("q", limit=8))
        late = [
            replace(p, plan=Plan(f"a{i}", ("a",), START + 60, p.uid, "0"), gates=())
            for i, p in enumerate(in_queue("q", 2, "late", created=5))
        ]
        world.board(*in_queue("q", 2, "early"), *late)
        assert granted(world) == ["late"]


class TestLoosePods:
    """Pods by themselves, which kube-scheduler schedules, have queues as well."""

    def test_one_over_its_queues_limit_may_use_no_node(self) -> None:
        world = a_world(a_queue("q", limit=4))
        world.update(make_loose("one", node="a0", queue="q"))
        verdict = world.guard.filter(make_loose("two", queue="q"), ["a1"])
        assert verdict.refused == {"a1": REFUSED_LIMIT}
        assert world.guard.filter(make_loose("other"), ["a1"]).passed == ["a1"]

    def test_one_in_a_missing_queue_may_use_no_node(self) -> None:
        world = a_world(a_queue("q"))
        verdict = world.guard.filter(make_loose("two", queue="gone"), ["a1"])
        assert verdict.refused == {"a1": REFUSED_QUEUE}

    async def test_of_two_that_race_for_the_rest_of_a_queues_limit_one_gets_it(self) -> None:
        world = a_world(a_queue("q", limit=4))
        racers = [make_loose("x", queue="q"), make_loose("y", queue="q")]
        world.update(*racers)
        world.api.delay = 0.1
        answers = await asyncio.gather(
            *(world.barrier.bind(p.uid, p.namespace, p.name, f"a{i}") for i, p in enumerate(racers))
        )
        await settle()
        assert sorted(answers) == ["", REFUSED_LIMIT]

    def test_one_does_not_get_what_is_kept_for_a_gang_of_its_queue(self) -> None:
        world = a_world(a_queue("q", limit=8))
        world.update(make_loose("one", node="a0", queue="q"))
        world.board(*in_queue("q", 2, "llm"))
        verdict = world.guard.filter(make_loose("two", queue="q"), ["a1"])
        assert verdict.refused == {"a1": REFUSED_LIMIT}


class TestWire:
    """How Queues and the queue of a Pod are read."""

    def test_a_queues_numbers_are_read_in_kais_units(self) -> None:
        spec = {
            "parentQueue": "org",
            "priority": 7,
            "resources": {
                "gpu": {"quota": 8, "limit": -1, "overQuotaWeight": 2},
                "cpu": {"quota": 500, "limit": 1000, "overQuotaWeight": 1},
                "memory": {"quota": -1, "limit": 64, "overQuotaWeight": 0},
            },
        }
        assert wire.queue({"metadata": {"name": "q"}, "spec": spec}) == Queue(
            name="q",
            parent="org",
            priority=7,
            quota=Amounts(8, 500, UNLIMITED),
            limit=Amounts(UNLIMITED, 1000, 64 * 10**6),
            weight=Amounts(2, 1, 0),
        )

    @pytest.mark.parametrize("spec", [{}, {"resources": None}, {"resources": {"gpu": None, "cpu": {}}}])
    def test_what_a_queue_does_not_say_is_nothing(self, spec: dict[str, Any]) -> None:
        assert wire.queue({"metadata": {"name": "q"}, "spec": spec}) == Queue("q")

    @pytest.mark.parametrize(
        ("labels", "gang_label", "queue"),
        [
            ({"kai.scheduler/queue": "team-a"}, "llm", "team-a"),
            ({}, "llm", "default-queue"),
            ({"kai.scheduler/queue": "team-a"}, "", "team-a"),
            ({}, "", ""),
        ],
    )
    def test_a_pods_queue_is_its_label_and_a_members_else_the_default_queue(
        self, labels: dict[str, str], gang_label: str, queue: str
    ) -> None:
        gang_labels = {"allaboard.dev/gang": gang_label} if gang_label else {}
        assert wire.pod(pod_object(meta={"labels": {**labels, **gang_labels}})).queue == queue


def test_what_queues_hold_follows_every_seat() -> None:
    world = a_world(a_queue("q"))
    members = in_queue("q", 2, "llm", shape=make_shape(2))
    world.board(*members)
    assert world.room.held["q"].gpu == 4
    world.bind(*members)
    assert world.room.held["q"].gpu == 4
    world.pods.drop(members[0].uid)
    assert world.room.held["q"] == Amounts(2)


def test_the_capacity_that_queues_share_is_that_of_all_nodes() -> None:
    world = a_world(cliques={"a": 2})
    assert world.queues.capacity == Amounts(8, 128_000, 1024 * GIB)
    world.nodes.update(make_node("a2", "a"))
    assert world.queues.capacity.gpu == 12
    assert FOUR_GPUS.requests[GPU] == 4
