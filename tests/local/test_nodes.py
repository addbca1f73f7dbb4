"""Fake nodes look like what GPU feature discovery, device plug-in and kubelet write."""

import re
from uuid import UUID

from allaboard.local.nodes import Fleet, clique_label, gpu_node, plain_node


def test_a_fleet_has_its_racks_first_and_then_the_plain_nodes() -> None:
    names = [node["metadata"]["name"] for node in Fleet(2, 3, gpus=4, plain=2).nodes()]
    assert names == [
        *("c0000-n00", "c0000-n01", "c0000-n02"),
        *("c0001-n00", "c0001-n01", "c0001-n02"),
        *("p0000", "p0001"),
    ]


def test_no_nodes_are_made_unless_asked_for() -> None:
    assert list(Fleet().nodes()) == []


def test_a_clique_label_is_a_canonical_cluster_uuid_and_a_clique_id() -> None:
    uuid, dot, clique = clique_label("c0003").partition(".")
    assert str(UUID(uuid)) == uuid
    assert dot == "."
    assert re.fullmatch(r"\d+", clique)


def test_nodes_share_a_clique_label_within_a_rack_only_and_keep_it_from_run_to_run() -> None:
    labels = [node["metadata"]["labels"]["nvidia.com/gpu.clique"] for node in Fleet(3, 18).nodes()]
    assert [labels.count(label) for label in dict.fromkeys(labels)] == [18, 18, 18]
    assert labels == [node["metadata"]["labels"]["nvidia.com/gpu.clique"] for node in Fleet(3, 18).nodes()]


def test_a_gpu_node_offers_what_a_gb200_tray_does() -> None:
    node = gpu_node("c0000", "c0000-n07", gpus=4)
    allocatable = node["status"]["allocatable"]
    labels = node["metadata"]["labels"]
    assert {key: allocatable[key] for key in ("cpu", "memory", "pods", "nvidia.com/gpu")} == {
        "cpu": "144",
        "memory": "960Gi",
        "pods": "110",
        "nvidia.com/gpu": "4",
    }
    assert labels["kubernetes.io/hostname"] == "c0000-n07"
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.count"] == "4"
    assert labels["kubernetes.io/arch"] == "arm64"  # Grace


def test_a_plain_node_has_neither_gpus_nor_a_clique() -> None:
    node = plain_node("p0000")
    text = str(node)
    assert "nvidia.com" not in text
    assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
