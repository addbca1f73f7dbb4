"""Queue status: what is written, when, and when it is left to KAI."""

from extender.queue_status import AGAIN_SECONDS, KAI_SECONDS, QueueStatus
from gangs.queues.tree import Queue
from tests.builders import Json, make_pod
from tests.extender.world import World

_KAI = "/apis/apps/v1/namespaces/kai-scheduler/deployments/queue-controller"
_PATH = "/apis/scheduling.run.ai/v2/queues/{}/status"


def a_world() -> tuple[World, QueueStatus]:
    world = World()
    for queue in (Queue("org"), Queue("team", "org")):
        world.queues.update(queue)
    return world, QueueStatus(world.api, world.queues, world.registry, world.clock)


def written(world: World) -> dict[str, Json]:
    return {call.path: call.body["status"] for call in world.api.calls if call.method == "PATCH"}


async def test_bound_pods_are_allocated_and_waiting_ones_requested_in_the_queue_and_above_it() -> None:
    world, status = a_world()
    world.update(make_pod("one", queue="team", node="a0"), make_pod("two", queue="team"))
    world.update(make_pod("done", queue="team", node="a1", terminal=True))
    await status.write()
    amounts = {
        "allocated": {"nvidia.com/gpu": "4", "cpu": "0m", "memory": "0"},
        "requested": {"nvidia.com/gpu": "8", "cpu": "0m", "memory": "0"},
    }
    assert written(world) == {
        _PATH.format("org"): {**amounts, "childQueues": ["team"]},
        _PATH.format("team"): {**amounts, "childQueues": []},
    }


async def test_only_a_queue_of_which_something_changed_is_written_again() -> None:
    world, status = a_world()
    await status.write()
    world.api.calls.clear()
    world.queues.update(Queue("other"))
    await status.write()
    assert world.api.calls == []
    world.clock.advance(AGAIN_SECONDS)
    await status.write()
    assert list(written(world)) == [_PATH.format("other")]


async def test_a_queue_whose_status_could_not_be_written_is_written_again() -> None:
    world, status = a_world()
    world.api.fail("/org/status", 500)
    await status.write()
    world.api.calls.clear()
    world.clock.advance(AGAIN_SECONDS)
    await status.write()
    assert list(written(world)) == [_PATH.format("org")]


async def test_while_kai_has_its_queue_controller_nothing_is_written() -> None:
    world, status = a_world()
    world.api.objects[_KAI] = {"kind": "Deployment"}
    await status.write()
    assert written(world) == {}
    del world.api.objects[_KAI]
    world.clock.advance(KAI_SECONDS)
    await status.write()
    assert len(written(world)) == 2


async def test_where_it_can_not_be_seen_whether_kai_runs_the_queues_are_left_alone() -> None:
    world, status = a_world()
    world.api.fail(_KAI, 403)
    await status.write()
    assert written(world) == {}


async def test_a_new_leader_writes_every_queue_anew() -> None:
    world, status = a_world()
    await status.write()
    world.api.calls.clear()
    status.forget()
    world.clock.advance(AGAIN_SECONDS)
    await status.write()
    assert len(written(world)) == 2


async def test_without_queues_nothing_is_asked_or_written() -> None:
    world = World()
    await QueueStatus(world.api, world.queues, world.registry, world.clock).write()
    assert world.api.calls == []
