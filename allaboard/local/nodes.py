"""Fake nodes in the shape of NVL72 racks, as GPU feature discovery, device plug-in and kubelet leave them.

    Fleet (how many) ──► node objects (pure, deterministic) ──► add (only those that are missing)

A node is created with its status, as a kubelet does when it registers: one request each.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from extender.api import Api, ApiError, Json
from gangs import contract

_LABEL_INSTANCE: Final = "node.kubernetes.io/instance-type"
_CLUSTERS: Final = UUID("5a8f9c52-2f3e-4d0b-9d0c-6f7f0f4d7c11")  # any constant: names become cluster UUIDs
_FABRIC_PARTITION: Final = 32766  # the clique id of an NVLink domain that was never partitioned
_MADE_AT: Final = "2026-01-01T00:00:00Z"
_IN_FLIGHT: Final = 32  # creations at a time
# A GB200 compute tray: two Grace CPUs of 72 cores with 480 GB each.
_TRAY: Final = {"cpu": "144", "memory": "960Gi", "pods": "110", "ephemeral-storage": "7Ti"}
_PLAIN: Final = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many nodes of which kind; nodes without GPUs belong to no clique."""

    cliques: int = 0
    nodes_per_clique: int = 18
    gpus: int = 4
    plain: int = 0

    def nodes(self) -> Iterator[Json]:
        """All nodes: c0000-n00 and so on in cliques, p0000 and so on without GPUs."""
        for clique in range(self.cliques):
            for index in range(self.nodes_per_clique):
                yield gpu_node(f"c{clique:04}", f"c{clique:04}-n{index:02}", self.gpus)
        for index in range(self.plain):
            yield plain_node(f"p{index:04}")


def clique_label(clique: str) -> str:
    """The value of nvidia.com/gpu.clique for a clique called c0003: cluster UUID, dot, clique id."""
    return f"{uuid5(_CLUSTERS, clique)}.{_FABRIC_PARTITION}"


def gpu_node(clique: str, name: str, gpus: int) -> Json:
    """A node of a clique with its GPUs."""
    labels = {
        _LABEL_INSTANCE: "gb200-nvl72",
        contract.NODE_CLIQUE: clique_label(clique),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.product": "NVIDIA-GB200",
        "nvidia.com/gpu.family": "blackwell",
        "nvidia.com/gpu.memory": "189471",
    }
    return _node(name, "arm64", labels, {**_TRAY, contract.GPU: str(gpus)})


def plain_node(name: str) -> Json:
    """A node without GPUs."""
    return _node(name, "amd64", {_LABEL_INSTANCE: "cpu-64"}, _PLAIN)


def _node(name: str, architecture: str, labels: dict[str, str], resources: dict[str, str]) -> Json:
    common = {
        "kubernetes.io/arch": architecture,
        contract.NODE_HOSTNAME: name,
        "kubernetes.io/os": "linux",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**common, **labels}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": _conditions(),
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _node_info(architecture),
        },
    }


def _conditions() -> list[Json]:
    def condition(kind: str, status: str, reason: str) -> Json:
        times = {"lastHeartbeatTime": _MADE_AT, "lastTransitionTime": _MADE_AT}
        return {"type": kind, "status": status, "reason": reason, **times}

    return [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        condition("Ready", "True", "KubeletReady"),
    ]


def _node_info(architecture: str) -> Json:
    empty = ("machineID", "systemUUID", "bootID")
    known = {
        "architecture": architecture,
        "operatingSystem": "linux",
        "osImage": "fake",
        "kernelVersion": "fake",
        "containerRuntimeVersion": "fake://",
        "kubeletVersion": "fake",
        "kubeProxyVersion": "",
    }
    return {**known, **dict.fromkeys(empty, "")}


async def add(api: Api, fleet: Fleet) -> int:
    """Create the nodes of the fleet that aren't there yet; the number created."""
    there = await api.get("/api/v1/nodes") or {}
    names = {item["metadata"]["name"] for item in there.get("items", ())}
    missing = [node for node in fleet.nodes() if node["metadata"]["name"] not in names]
    queue = iter(missing)
    await asyncio.gather(*(_create_each(api, queue) for _ in range(_IN_FLIGHT)))
    return len(missing)


async def _create_each(api: Api, queue: Iterator[Json]) -> None:
    for node in queue:
        try:
            await api.create("/api/v1/nodes", node)
        except ApiError as error:
            if error.reason != "AlreadyExists":  # another `up` beside us made it
                raise
