"""NVLink channels on the road: each member claims its node's only one, as NVCF's Pods do.

The devices are those of NVIDIA's ComputeDomain driver; kube-scheduler allocates them, kube-controller-manager
makes the claims, and the checker has the last word.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e import slow
from e2e.kube import Kube
from e2e.observer import Observer
from e2e.pods import container, member
from e2e.scene import Play
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "channels"
_DRIVER: Final = "compute-domain.nvidia.com"
_CLASS: Final = "compute-domain-default-channel.nvidia.com"
_TEMPLATE: Final = "nvcf-cd-channel-0"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def devices(played: tuple[Stage, Observer]) -> AsyncIterator[None]:
    """One channel on every node of every clique."""
    stage, _ = played
    nodes = [node for rack in stage.nodes for node in rack]
    expression = f'device.driver == "{_DRIVER}" && device.attributes["{_DRIVER}"].type == "channel"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    await stage.kube.apply("default", [_object("DeviceClass", _CLASS, spec), *map(_slice, nodes)])
    yield
    await stage.kube.run("delete", "resourceslices", "--all")
    await stage.kube.run("delete", "deviceclass", _CLASS)


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer], devices: None) -> AsyncIterator[Play]:
    """A namespace with the template; afterwards nothing is left and the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    for namespace in (_NAMESPACE, "others"):
        request = {"name": "channel", "exactly": {"deviceClassName": _CLASS}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        await stage.kube.apply(namespace, [_object("ResourceClaimTemplate", _TEMPLATE, spec)])
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE, "others")


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _slice(node: str) -> Json:
    rows = [
        {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
        for kind in ("channel", "daemon")
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": rows}
    return _object("ResourceSlice", f"{node}-channels", spec)


def _claiming(pod: Json) -> Json:
    """The Pod with a channel of its own."""
    pod["spec"]["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": _TEMPLATE}]
    for row in pod["spec"]["containers"]:
        row.setdefault("resources", {})["claims"] = [{"name": "channel"}]
    return pod


def _gang(count: int) -> list[Json]:
    return [_claiming(member(f"rank-{i}", "ranks", count, containers=[container()])) for i in range(count)]


def _holder(node: str) -> Json:
    """Somebody without GPUs who has the node's channel, placed by the stock kube-scheduler."""
    spec = {
        "containers": [{"name": "main", "image": "registry.invalid/x:1"}],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 0,
    }
    return _claiming({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"has-{node}"}, "spec": spec})


async def _where(kube: Kube, namespace: str = _NAMESPACE) -> dict[str, str]:
    pods = await kube.items("pods", namespace)
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in pods}


async def test_nodes_whose_channel_is_taken_are_full_though_their_gpus_are_free(play: Play) -> None:
    """By GPUs the first clique is the tightest with room: five free nodes, but two without a channel."""
    kube, (tight, *_) = play.stage.kube, play.stage.nodes
    await play.stage.occupy("others", tight[5:])
    await kube.apply("others", [_holder(node) for node in tight[:2]])
    await play.bound("others", len(tight[5:]) + 2)
    await kube.apply(_NAMESPACE, _gang(4))
    await play.bound(_NAMESPACE, 4)
    assert not set((await _where(kube)).values()) & set(tight)
    events = await kube.items("events", _NAMESPACE)
    assert not [e["message"] for e in events if "cannot allocate" in e["message"]]


async def test_a_gang_that_lacks_channels_says_so_and_boards_when_they_come_free(play: Play) -> None:
    kube, racks = play.stage.kube, play.stage.nodes
    taken = [node for rack in racks for node in rack[3:]]
    await kube.apply("others", [_holder(node) for node in taken])
    await play.bound("others", len(taken))
    await kube.apply(_NAMESPACE, _gang(4))
    message = await play.waiting(_NAMESPACE, "GangWaiting", "rank-0")
    assert f"with 4 GPUs, 1 {_CLASS}" in message
    assert f"has 3 ({len(racks[0]) - 3} with {_CLASS} in use)." in message
    freed = next(node for node in taken if node in racks[1])
    await kube.run("-n", "others", "delete", "pod", f"has-{freed}")
    await play.bound(_NAMESPACE, 4)
    assert freed in (await _where(kube)).values()


async def test_a_boarding_cancelled_with_channels_allocated_is_finished_in_another_way(play: Play) -> None:
    """At the barrier all claims are allocated, and one of them on a node that is cordoned then.

    kube-scheduler itself takes a claim back from a Pod that it finds unschedulable; until then the plan keeps
    the member where its claim is.
    """
    kube = play.stage.kube
    storage_class, claim, *pods = slow.gang(4)
    await kube.apply(_NAMESPACE, [storage_class, claim, *map(_claiming, pods)])
    await slow.at_the_barrier(kube, _NAMESPACE)
    before = {
        p["metadata"]["name"]: p["status"]["nominatedNodeName"] for p in await kube.items("pods", _NAMESPACE)
    }
    unfit = before["rank-1"]
    try:
        await kube.run("cordon", unfit)
        await slow.provide(kube, _NAMESPACE)
        await play.bound(_NAMESPACE, 4, seconds=60)
        after = await _where(kube)
        assert unfit not in after.values()
        assert len(set(after.values())) == 4
    finally:
        await kube.run("uncordon", unfit)
        await slow.clear(kube, _NAMESPACE)
