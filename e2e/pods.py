"""Pods as scenes, faults and tests write them: each takes a whole node of the stage."""

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

GPUS: Final = 4  # of a node, and so of a Pod
HOSTNAME: Final = "kubernetes.io/hostname"


def container(**more: Any) -> Json:
    """A container that asks for all GPUs of a node."""
    resources = {"limits": {"nvidia.com/gpu": str(GPUS)}}
    return {"name": "worker", "image": "registry.invalid/worker:1", "resources": resources, **more}


def pod(
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A Pod by itself; spec: its fields, in place of or beside the usual ones."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container()], **spec},
    }


def member(name: str, gang: str, floor: int, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A Pod of a gang by our own label and annotations: so many at once, all in one clique."""
    asked = {
        "allaboard.dev/min-member": str(floor),
        "allaboard.dev/topology-required": "nvidia.com/gpu.clique",
    }
    names = {"allaboard.dev/gang": gang, **(labels or {})}
    return pod(name, names, asked, schedulerName="allaboard", **spec)


def priority_class(name: str) -> Json:
    """For Pods that go before all others; they take what is free, and evict nobody."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1000,
        "preemptionPolicy": "Never",
    }
