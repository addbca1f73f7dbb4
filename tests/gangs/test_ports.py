"""Host ports are room like any other: one Pod a node and port, whatever the shapes."""

from typing import Any

import pytest

from gangs.nodes import Shape
from gangs.packing import Candidate
from gangs.planner import Boarding, explain, place
from gangs.ports import ALL, host_ports
from gangs.requests import pod_requests
from gangs.room import Seat
from tests.builders import FOUR_GPUS, LEVEL, make_room


def shape(port: int = 8080, gpus: int = 1, **more: Any) -> Shape:
    container = {
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
        "ports": [{"containerPort": 80, "hostPort": port, **more}],
    }
    return Shape(pod_requests({"containers": [container]}))


def boarding(*shapes: Shape) -> Boarding:
    members = tuple(Candidate(f"m{i}", each) for i, each in enumerate(shapes))
    return Boarding(members, len(members), LEVEL)


def test_two_members_with_one_port_sit_on_two_nodes() -> None:
    both = shape()
    placement = place(boarding(both, both), make_room({"a": 2}))
    assert placement
    assert len(set(placement.nodes.values())) == 2


def test_members_of_different_shapes_do_not_share_a_port_either() -> None:
    assert place(boarding(shape(gpus=1), shape(gpus=2)), make_room({"a": 1})) is None
    assert place(boarding(shape(gpus=1), shape(8081, gpus=2)), make_room({"a": 1}))


@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [
        ({}, {}, False),
        ({"hostIP": "10.0.0.1"}, {}, False),
        ({}, {"hostIP": "10.0.0.1"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, True),
        ({"protocol": "UDP"}, {"protocol": "TCP"}, True),
    ],
)
def test_a_port_is_taken_per_protocol_and_address(one: Any, other: Any, fits: bool) -> None:
    room = make_room({"a": 1})
    room.take("sitting", Seat("a0", shape(**one).requests, "sitting"))
    assert bool(place(boarding(shape(**other)), room)) is fits


def test_room_comes_back_when_the_holder_of_the_port_goes() -> None:
    room = make_room({"a": 1})
    room.take("sitting", Seat("a0", shape().requests, "sitting"))
    assert place(boarding(shape()), room) is None
    room.give("sitting")
    assert place(boarding(shape()), room)


def test_a_port_in_use_is_named_as_the_reason() -> None:
    room = make_room({"a": 1})
    room.take("sitting", Seat("a0", shape().requests, "sitting"))
    nearest = explain(boarding(shape()), room).nearest
    assert nearest
    assert nearest.blockers == (("with host port 8080 in use", 1),)


def test_init_containers_count_only_where_they_stay() -> None:
    row = {"ports": [{"hostPort": 80}, {"containerPort": 81}]}
    assert host_ports({"initContainers": [row]}) == {}
    assert host_ports({"initContainers": [{**row, "restartPolicy": "Always"}]}) == {"hostPort:TCP:80": ALL}


def test_pods_without_host_ports_ask_for_none() -> None:
    assert not [name for name in FOUR_GPUS.requests if name.startswith("hostPort")]
