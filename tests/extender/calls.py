"""kube-scheduler's bind calls, as tests make them, and Pods as the API server has them."""

import asyncio
from contextlib import suppress

from extender.wire import plan_annotation
from gangs.contract import ANNOTATION_PLAN
from gangs.pods import Plan, Pod
from tests.builders import LEVEL, Json, make_members, make_pod, pod_object
from tests.extender.world import World

Answer = asyncio.Task[str]

POD = "/api/v1/namespaces/default/pods/llm-0"


def a_world(cliques: dict[str, int] | None = None) -> World:
    return World({"a": 4} if cliques is None else cliques, clock=asyncio.get_running_loop().time)


def boarding(number: int = 3) -> tuple[World, list[Pod]]:
    """A gang with seats."""
    world = a_world()
    world.board(*make_members(number, required=LEVEL))
    return world, list(world.registry.pods.values())


def call(world: World, pod: Pod, node: str = "") -> Answer:
    """kube-scheduler's bind call for the Pod, on its seat unless told otherwise."""
    on = node or world.seat(pod)
    return asyncio.create_task(world.barrier.bind(pod.uid, pod.namespace, pod.name, on))


async def hang_up(task: Answer) -> None:
    """kube-scheduler gives this call up."""
    await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def binding_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"


def on_node(pod: Pod, node: str) -> Json:
    return pod_object(pod.name, uid=pod.uid, spec={"nodeName": node})


def on_server(pod: Pod, version: str, plan: Plan | None = None) -> Json:
    """The unbound Pod as the API server has it by now."""
    annotations = {ANNOTATION_PLAN: plan_annotation(plan)} if plan else {}
    return pod_object(pod.name, uid=pod.uid, annotations=annotations, meta={"resourceVersion": version})


def changed_since(version: str, plan: Plan | None = None) -> tuple[World, Pod]:
    """A member with a seat, seen in version 1, and the Pod as the API server has it by now."""
    world = a_world()
    pod = make_pod(floor=1, required=LEVEL, version="1")
    world.board(pod)
    world.api.objects[POD] = on_server(pod, version, plan)
    return world, pod
