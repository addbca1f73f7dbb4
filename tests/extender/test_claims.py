"""Devices by ResourceClaim: one NVLink channel a node, GPUs behind claims, and where claims tie Pods."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from extender import wire
from gangs.contract import GPU
from gangs.nodes import Shape
from gangs.pods import DeviceClaim, Pod
from tests.builders import Json, make_pod, pod_object
from tests.extender.world import World, gang

CHANNEL = "compute-domain-default-channel.nvidia.com"
DRIVER = "compute-domain.nvidia.com"
GPU_CLASS = "gpu.nvidia.com"
NO_GPU = Shape({"pods": 1})


def device_class(name: str, expression: str, **spec: str) -> Json:
    rows = [{"cel": {"expression": expression}}]
    return {"metadata": {"uid": f"u-{name}", "name": name}, "spec": {"selectors": rows, **spec}}


def channel_class() -> Json:
    return device_class(
        CHANNEL,
        f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "channel" && '
        f'device.attributes["{DRIVER}"].id == 0',
    )


def gpu_class(**spec: str) -> Json:
    expression = f'device.driver == "{GPU_CLASS}" && device.attributes["{GPU_CLASS}"].type == "gpu"'
    return device_class(GPU_CLASS, expression, **spec)


def slice_object(
    node: str, driver: str, devices: Iterable[Json], *, of: int = 1, generation: int = 1
) -> Json:
    return {
        "metadata": {"uid": f"u-{driver}-{node}-{generation}", "name": f"{driver}-{node}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": of},
            "devices": list(devices),
        },
    }


def channels(node: str) -> Json:
    rows = [
        {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
        for kind in ("channel", "daemon")
    ]
    return slice_object(node, DRIVER, rows)


def gpus(node: str, number: int = 4, **rest: int) -> Json:
    rows = [
        {
            "name": f"gpu-{i}",
            "attributes": {"type": {"string": "gpu"}, "driverVersion": {"version": f"580.{i}.0"}},
            "capacity": {"memory": {"value": "186Gi"}},
        }
        for i in range(number)
    ]
    return slice_object(node, GPU_CLASS, rows, **rest)


def template(name: str, device_class: str, **exactly: object) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": device_class, **exactly}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"metadata": {"uid": f"u-{name}", "namespace": "default", "name": name}, "spec": spec}


def claim(name: str, node: str = "", *devices: str, driver: str = DRIVER, **annotations: str) -> Json:
    """Allocated on that node, or not yet."""
    results = [{"request": "r", "driver": driver, "pool": node, "device": d} for d in devices]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    allocation = {"devices": {"results": results}, "nodeSelector": selector}
    status = {"allocation": allocation, "reservedFor": [{"name": "rival"}]} if node else {}
    meta = {"uid": f"u-{name}", "namespace": "default", "name": name, "annotations": annotations}
    return {"metadata": meta, "status": status}


def claiming(pods: Iterable[Pod], template: str = "channel", name: str = "") -> list[Pod]:
    return [replace(pod, device_claims=(DeviceClaim(name, template),)) for pod in pods]


@pytest.fixture
def world() -> World:
    """Clique b would be chosen: it is the smaller one that fits. Each node has its channel."""
    world = World({"a": 6, "b": 4})
    world.devices.classes.put(channel_class())
    for node in world.room.nodes:
        world.devices.slices.put(channels(node))
    world.claims.templates.put(template("channel", CHANNEL))
    return world


def domain(world: World) -> str:
    return world.written.grants[-1].domain[0] if world.written.grants else ""


def test_a_node_whose_channel_is_taken_is_full_though_its_gpus_are_free(world: World) -> None:
    world.claims.claims.put(claim("other", "b0", "channel-0"))
    world.board(*claiming(gang(4)))
    assert domain(world) == "a"


def test_a_free_channel_on_each_node_lets_the_gang_board_the_tighter_clique(world: World) -> None:
    world.board(*claiming(gang(4)))
    assert domain(world) == "b"


def test_two_members_never_share_a_node_with_one_channel(world: World) -> None:
    shape = Shape({GPU: 1, "pods": 1})
    small = [replace(p, shape=shape) for p in gang(5)]
    world.board(*claiming(small))
    grant = world.written.grants[-1]
    assert (grant.domain, len(set(grant.seats.values()))) == (("a",), 5)


def test_the_sentence_names_the_device_class_that_is_lacking(world: World) -> None:
    for node in ("a0", "a1", "a2", "b0"):
        world.claims.claims.put(claim(f"other-{node}", node, "channel-0"))
    world.board(*claiming(gang(4)))
    sentence = world.news.sentence(world.rounds.pending["default", "llm"])
    assert f"4 GPUs, 1 {CHANNEL}" in sentence
    assert f"Closest: a has 3 (3 with {CHANNEL} in use)." in sentence


def test_a_gang_that_waited_for_a_channel_boards_when_it_is_deallocated(world: World) -> None:
    for node in ("a0", "a1", "a2", "b0"):
        world.claims.claims.put(claim(f"other-{node}", node, "channel-0"))
    world.board(*claiming(gang(4)))
    assert world.written.grants == []
    world.claims.claims.put(claim("other-b0"))
    world.round()
    assert domain(world) == "b"


def test_an_allocated_claim_ties_its_member_and_asks_for_no_second_device(world: World) -> None:
    first, *others = gang(4)
    world.claims.claims.put(claim("mine", "a5", "channel-0"))
    world.board(*claiming([first], name="mine"), *claiming(others))
    (grant,) = world.written.grants
    assert (grant.domain, grant.seats["llm-0"]) == (("a",), "a5")


def test_a_promise_gives_its_device_up_to_the_claim_once_that_is_allocated(world: World) -> None:
    pods = claiming(gang(4))
    world.board(*pods)
    named = claiming(pods, name="mine")[0]
    world.update(named)
    node = world.seat(named)
    world.claims.claims.put(claim("mine", node, "channel-0"))
    assert world.room.free(world.room.nodes[node])[f"device:{CHANNEL}"] == 0


def test_the_guard_keeps_a_promised_channel_from_loose_pods(world: World) -> None:
    world.board(*claiming(gang(4)))
    loose = make_pod("loose", gang="", shape=NO_GPU, device_claims=(DeviceClaim("", "channel"),))
    assert list(world.guard.filter(loose, ["a0", "b0"]).passed) == ["a0"]


def test_gpus_behind_claims_are_counted_by_node(world: World) -> None:
    world.devices.classes.put(gpu_class())
    world.claims.templates.put(template("gpus", GPU_CLASS, count=4))
    for node in ("a0", "a1", "a2", "a3"):
        world.devices.slices.put(gpus(node))
    world.claims.claims.put(claim("other", "a3", "gpu-0", driver=GPU_CLASS))
    bare = [replace(p, shape=NO_GPU) for p in gang(4)]
    world.board(*claiming(bare, "gpus"))
    assert world.written.grants == []
    world.claims.claims.drop("u-other")
    world.round()
    assert sorted(world.seats(*bare)) == ["a0", "a1", "a2", "a3"]


@pytest.mark.parametrize(
    ("expression", "fit"),
    [
        ('device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("580.2.0")) >= 0', 2),
        ('device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("200Gi"))', 0),
        ('device.capacity["gpu.nvidia.com"].memory.isLessThan(quantity("200Gi"))', 4),
        ('device.attributes["gpu.nvidia.com"].nothing == "x"', 0),
        ('has(device.attributes["gpu.nvidia.com"].nothing)', 0),
    ],
)
def test_a_requests_own_selectors_narrow_the_class(world: World, expression: str, fit: int) -> None:
    world.devices.classes.put(gpu_class())
    world.devices.slices.put(gpus("a0"))
    rows = [{"cel": {"expression": expression}}]
    world.claims.templates.put(template("gpus", GPU_CLASS, selectors=rows))
    (pod,) = claiming([make_pod(shape=NO_GPU)], "gpus")
    assert world.room.slots(world.shapes(pod), world.room.nodes["a0"]) == fit


def test_an_expression_that_we_cannot_read_is_left_to_kube_scheduler(world: World) -> None:
    rows = [{"cel": {"expression": "device.attributes.?x.orValue({}) == {}"}}]
    world.claims.templates.put(template("odd", CHANNEL, selectors=rows))
    pods = claiming(gang(4), "odd")
    assert world.shapes(pods[0]).requests == pods[0].shape.requests
    world.board(*pods)
    assert domain(world) == "b"


def test_a_class_that_does_not_exist_fits_nowhere(world: World) -> None:
    world.claims.templates.put(template("nothing", "missing.example.com"))
    world.board(*claiming(gang(4), "nothing"))
    sentence = world.news.sentence(world.rounds.pending["default", "llm"])
    assert "without devices of class missing.example.com" in sentence


def test_devices_of_a_pool_count_only_when_all_its_slices_are_there(world: World) -> None:
    world.devices.classes.put(gpu_class())
    world.devices.slices.put(gpus("a0", of=2))
    assert f"device:{GPU_CLASS}" not in world.room.nodes["a0"].allocatable
    world.devices.slices.put(gpus("a0", generation=2))
    assert world.room.nodes["a0"].allocatable[f"device:{GPU_CLASS}"] == 4


def test_a_tainted_device_is_for_requests_that_tolerate_it(world: World) -> None:
    tainted = channels("a0")
    taint = {"key": "repair", "effect": "NoSchedule"}
    tainted["spec"]["devices"][0]["taints"] = [taint]
    world.devices.slices.put(tainted)
    rows = [{"key": "repair", "operator": "Exists"}]
    world.claims.templates.put(template("brave", CHANNEL, tolerations=rows))
    node = world.room.nodes["a0"]
    (shy,), (brave,) = claiming([make_pod()]), claiming([make_pod()], "brave")
    assert world.room.slots(world.shapes(shy), node) == 0
    assert world.room.slots(world.shapes(brave), node) == 1


def test_an_extended_resource_is_served_by_devices_where_no_device_plugin_lists_it(world: World) -> None:
    world.devices.classes.put(gpu_class(extendedResourceName="example.com/gpu"))
    world.devices.slices.put(gpus("a0"))
    assert world.room.nodes["a0"].allocatable["example.com/gpu"] == 4
    world.claims.claims.put(claim("direct", "a0", "gpu-0", driver=GPU_CLASS))
    assert world.room.free(world.room.nodes["a0"])["example.com/gpu"] == 3


def test_what_the_device_plugin_lists_is_never_summed_with_devices(world: World) -> None:
    world.devices.classes.put(gpu_class(extendedResourceName="nvidia.com/gpu"))
    world.devices.slices.put(gpus("a0", 8))
    assert world.room.nodes["a0"].allocatable["nvidia.com/gpu"] == 4


def test_a_claim_for_extended_resources_is_not_counted_beside_its_pod(world: World) -> None:
    world.devices.classes.put(gpu_class(extendedResourceName="example.com/gpu"))
    world.devices.slices.put(gpus("a0"))
    world.claims.claims.put(claim("special", "a0", "gpu-0", driver=GPU_CLASS))
    shape = Shape({"example.com/gpu": 1, "pods": 1})
    pod = make_pod(gang="", node="a0", shape=shape, covered=("example.com/gpu",))
    world.update(replace(pod, device_claims=(DeviceClaim("special"),)))
    free = world.room.free(world.room.nodes["a0"])
    assert (free["example.com/gpu"], free[f"device:{GPU_CLASS}"]) == (3, 3)


def test_slices_that_come_after_the_claims_count_what_is_held() -> None:
    world = World({"a": 1})
    world.claims.claims.put(claim("other", "a0", "channel-0"))
    world.devices.slices.put(channels("a0"))
    world.devices.classes.put(channel_class())
    assert world.room.free(world.room.nodes["a0"])[f"device:{CHANNEL}"] == 0


def test_devices_that_leave_their_node_leave_its_room(world: World) -> None:
    world.devices.slices.drop(f"u-{DRIVER}-a0-1")
    assert f"device:{CHANNEL}" not in world.room.nodes["a0"].allocatable


def test_a_claim_is_read_from_template_or_status() -> None:
    obj = pod_object("p")
    obj["spec"]["resourceClaims"] = [
        {"name": "a", "resourceClaimTemplateName": "channel"},
        {"name": "b", "resourceClaimName": "shared"},
    ]
    obj["status"] = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "p-a-x7"}]}
    assert wire.pod(obj).device_claims == (DeviceClaim("p-a-x7", "channel"), DeviceClaim("shared"))
