"""What the real Grove operator made (tests/fixtures/grove), and the same as it was at creation."""

import copy
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]

FIXTURES: Final = Path(__file__).parent / "fixtures" / "grove"
GATE: Final = "grove.io/podgang-pending-creation"
# Written after creation, by kube-scheduler, KAI's binder and the kubelet.
_LATER: Final = ("nodeName", "priority", "preemptionPolicy")
_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation")


def captured(name: str) -> list[Json]:
    """The objects of one capture: "default", "kai" or "pcsg", a dash, and what they are."""
    listing: Json = yaml.safe_load((FIXTURES / f"{name}.yaml").read_text())
    return list(listing["items"])


def podgangs(name: str) -> list[Json]:
    """PodGangs as Grove creates them: nobody is in them yet, and nothing is said of their state."""
    return [_gathering(gang) for gang in captured(f"{name}-podgang")]


def pods(name: str) -> list[Json]:
    """Pods as Grove creates them: gated, and nobody has seen them."""
    return [_created(pod) for pod in captured(f"{name}-pods")]


def filled(gang: Json, pods: list[Json]) -> Json:
    """The PodGang's podgroups once these Pods exist."""
    groups = copy.deepcopy(gang["spec"]["podgroups"])
    for group in groups:
        group["podReferences"] = [
            {"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]}
            for pod in pods
            if pod["metadata"]["labels"]["grove.io/podclique"] == group["name"]
        ]
    return {"spec": {"podgroups": groups}}


def _gathering(gang: Json) -> Json:
    fresh = copy.deepcopy(gang)
    fresh.pop("status")
    for group in fresh["spec"]["podgroups"]:
        group["podReferences"] = []
    return _anew(fresh)


def _created(pod: Json) -> Json:
    fresh = copy.deepcopy(pod)
    fresh.pop("status")
    fresh["metadata"].get("annotations", {}).pop("received-resource-type", None)
    for key in _LATER:
        fresh["spec"].pop(key, None)
    fresh["spec"]["schedulingGates"] = [{"name": GATE}]
    return _anew(fresh)


def _anew(obj: Json) -> Json:
    for key in _SERVER:
        obj["metadata"].pop(key, None)
    obj["metadata"].get("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return obj
