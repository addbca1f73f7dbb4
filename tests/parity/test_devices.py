"""Devices by ResourceClaim and by extended resource: the planner's verdict is kube-scheduler's.

    nodes, ResourceSlices ─► residents take devices (kube-scheduler allocates) ─► askers: bound or not

Each pair of resident and asker has a node of its own, which only their nodeSelector matches. What the
planner knows comes through the extender's own handlers, from the objects that the API server has.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local import nodes
from allaboard.local.cluster import Cluster
from extender import wire
from extender.api import Api, connect
from extender.claims import RESOURCE_CLAIMS, TEMPLATES, Claims
from extender.shapes import Shapes
from extender.slices import CLASSES, SLICES, Devices
from extender.volumes import Volumes
from gangs.room import Room, Seat
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

Json = dict[str, Any]

_SEED: Final = int(os.environ.get("SEED", "1"))
_PAIRS: Final = 96
_NAMESPACE: Final = "parity-devices"
_PODS: Final = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_GPU_DRIVER: Final = "gpu.parity.example.com"
_CHANNEL_DRIVER: Final = "channel.parity.example.com"
_EXTENDED: Final = "parity.example.com/gpu"
_ATTRIBUTES: Final = f'device.attributes["{_GPU_DRIVER}"]'
_TOLERATION: Final = {"key": "repair", "operator": "Exists", "effect": "NoSchedule"}

# What a Pod may ask for: exact requests of a claim, or an extended resource.
_KINDS: Final[dict[str, Json]] = {
    "channel": {"deviceClassName": _CHANNEL_DRIVER},
    "one GPU": {"deviceClassName": _GPU_DRIVER},
    "two GPUs": {"deviceClassName": _GPU_DRIVER, "count": 2},
    "new driver": {
        "deviceClassName": _GPU_DRIVER,
        "selectors": [{"cel": {"expression": f'{_ATTRIBUTES}.version.isGreaterThan(semver("2.0.0-rc1"))'}}],
    },
    "much memory": {
        "deviceClassName": _GPU_DRIVER,
        "selectors": [
            {
                "cel": {
                    "expression": f'device.capacity["{_GPU_DRIVER}"].memory.compareTo(quantity("100Gi")) >= 0'
                }
            }
        ],
    },
    "tolerant": {"deviceClassName": _GPU_DRIVER, "count": 2, "tolerations": [_TOLERATION]},
}
_EXTENDED_KINDS: Final = {
    "extended": _EXTENDED,
    "implicit": f"deviceclass.resource.kubernetes.io/{_GPU_DRIVER}",
}
_ALL: Final = (*_KINDS, *_EXTENDED_KINDS)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """By asker: what it asks for; whether kube-scheduler bound it, and the planner would, with and without
    knowing of devices."""

    kind: dict[str, str]
    bound: dict[str, bool]
    planned: dict[str, bool]
    blind: dict[str, bool]


def _slug(kind: str) -> str:
    return kind.lower().replace(" ", "-")


def _pod(name: str, number: int, kind: str) -> Json:
    container: Json = {"name": "main", "image": "registry.invalid/worker:1"}
    spec: Json = {"containers": [container], "nodeSelector": {"device-pair": str(number)}}
    if kind in _KINDS:
        container["resources"] = {"claims": [{"name": "d"}]}
        spec["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": _slug(kind)}]
    else:
        container["resources"] = {"limits": {_EXTENDED_KINDS[kind]: "2"}}
    return {"metadata": {"name": name}, "spec": spec}


def _slices(number: int, rng: random.Random) -> Iterable[Json]:
    node = f"devices-{number}"
    gpus = [
        {
            "name": f"gpu-{i}",
            "attributes": {"version": {"version": rng.choice(("1.9.0", "2.0.0", "2.0.0-rc1", "2.1.0"))}},
            "capacity": {"memory": {"value": rng.choice(("80Gi", "100Gi", "186Gi"))}},
            "taints": [{"key": "repair", "effect": "NoSchedule"}] if rng.random() < 0.2 else [],
        }
        for i in range(rng.randint(1, 4))
    ]
    channels = [{"name": "channel-0"}]
    for driver, devices in ((_GPU_DRIVER, gpus), (_CHANNEL_DRIVER, channels)):
        of = 2 if rng.random() < 0.05 else 1  # a pool of which a slice is missing
        pool = {"name": node, "generation": 1, "resourceSliceCount": of}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
        yield {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}


async def _set_up(api: Api) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    await eventually(lambda: _there(api, f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/default"))
    for driver, extra in ((_GPU_DRIVER, {"extendedResourceName": _EXTENDED}), (_CHANNEL_DRIVER, {})):
        selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
        await api.create(CLASSES, {"metadata": {"name": driver}, "spec": {"selectors": selectors, **extra}})
    for kind, exactly in _KINDS.items():
        requests = [{"name": "r", "exactly": exactly}]
        body = {"metadata": {"name": _slug(kind)}, "spec": {"spec": {"devices": {"requests": requests}}}}
        await api.create(TEMPLATES.replace("v1/", f"v1/namespaces/{_NAMESPACE}/"), body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def verdicts(cluster: Cluster) -> AsyncIterator[Verdicts]:
    api = await connect(cluster.kubeconfig)
    rng = random.Random(_SEED)
    kinds = {f"asker-{n}": _ALL[n % len(_ALL)] for n in range(_PAIRS)}
    try:
        await _set_up(api)
        for number in range(_PAIRS):
            node = nodes.plain_node(f"devices-{number}")
            node["metadata"]["labels"]["device-pair"] = str(number)
            await api.create("/api/v1/nodes", node)
            for obj in _slices(number, rng):
                await api.create(SLICES, obj)
        residents = [n for n in range(_PAIRS) if rng.random() < 0.8]
        await _each(api.create(_PODS, _pod(f"resident-{n}", n, rng.choice(_ALL))) for n in residents)
        await eventually(lambda: _decided(api, "resident-", len(residents)), within=60)
        refused = [f"{_PODS}/{name}" for name, bound in (await _bound(api, "resident-")).items() if not bound]
        await _each(api.delete(path) for path in refused)
        await _each(api.create(_PODS, _pod(name, n, kinds[name])) for n, name in enumerate(kinds))
        await eventually(lambda: _decided(api, "asker-", _PAIRS), within=60)
        yield await _judge(api, kinds)
    finally:
        await api.delete(f"/api/v1/namespaces/{_NAMESPACE}")
        await api.delete(_PODS, {"gracePeriodSeconds": 0})
        await _each(api.delete(f"/api/v1/nodes/devices-{n}") for n in range(_PAIRS))
        await api.delete(SLICES)
        await _each(api.delete(f"{CLASSES}/{driver}") for driver in (_GPU_DRIVER, _CHANNEL_DRIVER))
        await api.close()


async def _judge(api: Api, kinds: dict[str, str]) -> Verdicts:
    """Ask the planner, with all that the API server has but the askers themselves."""
    room = Room()
    devices = Devices(lambda _: None)
    claims = Claims(devices, room, lambda *_: None)
    shapes = Shapes(Volumes(lambda *_: None), claims)
    handlers = (CLASSES, devices.classes), (SLICES, devices.slices), (TEMPLATES, claims.templates)
    for path, handler in handlers:
        for obj in await _items(api, path):
            handler.put(obj)
    for obj in await _items(api, RESOURCE_CLAIMS):
        if not any(r["name"].startswith("asker-") for r in obj["metadata"].get("ownerReferences") or ()):
            claims.claims.put(obj)
    for obj in await _items(api, "/api/v1/nodes"):
        room.put_node(devices.equip(wire.node(obj)))
    pods = [wire.pod(obj) for obj in await _items(api, _PODS)]
    for pod in pods:
        if pod.name.startswith("resident-"):
            room.take(pod.uid, Seat(pod.node, shapes(pod).requests, pod.name))
    askers = {p.name: p for p in pods if p.name in kinds}
    node = {name: room.nodes[name.replace("asker", "devices")] for name in kinds}
    return Verdicts(
        kinds,
        await _bound(api, "asker-"),
        {name: room.slots(shapes(pod), node[name]) > 0 for name, pod in askers.items()},
        {name: room.slots(pod.shape, node[name]) > 0 for name, pod in askers.items()},
    )


async def _items(api: Api, path: str) -> list[Json]:
    return list((await api.get(path) or {})["items"])


async def _bound(api: Api, prefix: str) -> dict[str, bool]:
    """By Pod that kube-scheduler has decided on: whether it was bound."""
    found = {}
    for obj in await _items(api, _PODS):
        name, conditions = obj["metadata"]["name"], obj.get("status", {}).get("conditions") or ()
        decided = any(
            c["type"] == "PodScheduled" and c.get("reason") != "SchedulingGated" for c in conditions
        )
        if name.startswith(prefix) and (decided or obj["spec"].get("nodeName")):
            found[name] = bool(obj["spec"].get("nodeName"))
    return found


async def _decided(api: Api, prefix: str, number: int) -> bool:
    """All have a verdict, and none has changed for a while: a claim may come later than its Pod."""
    before = await _bound(api, prefix)
    if len(before) < number:
        return False
    await asyncio.sleep(5)
    return before == await _bound(api, prefix)


async def _each(calls: Iterable[Awaitable[object]]) -> None:
    await asyncio.gather(*calls)


async def _there(api: Api, path: str) -> bool:
    return await api.get(path) is not None


async def test_the_planner_says_of_devices_what_kube_scheduler_says(verdicts: Verdicts) -> None:
    wrong = {
        f"{name} ({verdicts.kind[name]}): kube-scheduler says {bound}"
        for name, bound in verdicts.bound.items()
        if verdicts.planned[name] != bound
    }
    assert wrong == set(), f"SEED={_SEED}"


async def test_every_kind_of_device_is_seen_to_be_there_and_to_be_lacking(verdicts: Verdicts) -> None:
    counts = Counter((verdicts.kind[name], bound) for name, bound in verdicts.bound.items())
    assert {(k, b) for k in _ALL for b in (True, False) if not counts[k, b]} == set()


@pytest.mark.parametrize("kind", _KINDS)
async def test_a_planner_that_knows_nothing_of_claims_is_found_out(verdicts: Verdicts, kind: str) -> None:
    names = [name for name, its in verdicts.kind.items() if its == kind]
    assert any(verdicts.blind[name] != verdicts.bound[name] for name in names)
