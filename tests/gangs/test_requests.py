"""What a Pod asks of a node: the formula of kube-scheduler, on its own test vectors."""

from typing import Any

import pytest

from gangs.requests import pod_requests

GPU = "nvidia.com/gpu"


def container(sidecar: bool = False, limits: dict[str, str] | None = None, **requests: str) -> dict[str, Any]:
    """A container; `gpu` stands for nvidia.com/gpu."""
    named = {GPU if name == "gpu" else name: value for name, value in requests.items()}
    made: dict[str, Any] = {"resources": {"requests": named, "limits": limits or {}}}
    return {**made, "restartPolicy": "Always"} if sidecar else made


@pytest.mark.parametrize(
    ("containers", "inits", "expected"),
    [
        pytest.param([container(gpu="4")], [], 4, id="one container"),
        pytest.param([container(gpu="1"), container(gpu="3")], [], 4, id="containers add up"),
        pytest.param([container(gpu="4")], [container(gpu="4")], 4, id="an init container runs before them"),
        pytest.param([container(gpu="4")], [container(gpu="8")], 8, id="the larger of both"),
        pytest.param([container(gpu="4")], [container(True, gpu="1")], 5, id="a sidecar stays"),
        pytest.param(
            [container(gpu="4")],
            [container(True, gpu="1"), container(gpu="8")],
            9,
            id="an init container beside the sidecar that was started before it",
        ),
        pytest.param(
            [container(gpu="4")],
            [container(gpu="8"), container(True, gpu="1")],
            8,
            id="an init container before the sidecar runs alone",
        ),
        pytest.param(
            [container(gpu="1")],
            [container(True, gpu="1"), container(gpu="2"), container(True, gpu="2"), container(gpu="2")],
            5,
            id="sidecars pile up",
        ),
    ],
)
def test_containers_and_init_containers_add_up_as_they_run(
    containers: list[Any], inits: list[Any], expected: int
) -> None:
    assert pod_requests({"containers": containers, "initContainers": inits})[GPU] == expected


def test_pod_level_requests_replace_cpu_and_memory_but_not_devices() -> None:
    spec = {
        "containers": [container(cpu="1", memory="1Gi", gpu="4")],
        "resources": {"requests": {"cpu": "8", "hugepages-2Mi": "4Mi", GPU: "9"}},
    }
    asked = pod_requests(spec)
    assert asked["cpu"] == 8000
    assert asked["memory"] == 2**30
    assert asked["hugepages-2Mi"] == 4 * 2**20
    assert asked[GPU] == 4


def test_overhead_comes_on_top_even_of_pod_level_requests() -> None:
    spec = {
        "containers": [container(cpu="1")],
        "resources": {"requests": {"cpu": "2"}},
        "overhead": {"cpu": "250m", "memory": "64Mi"},
    }
    assert pod_requests(spec) == {"cpu": 2250, "memory": 64 * 2**20, "pods": 1}


def test_a_limit_without_a_request_counts_as_one() -> None:
    assert pod_requests({"containers": [container(limits={GPU: "4"})]})[GPU] == 4


def test_a_request_below_its_limit_rules() -> None:
    assert pod_requests({"containers": [container(limits={"cpu": "4"}, cpu="1")]})["cpu"] == 1000


def test_nothing_asked_is_still_one_pod_place() -> None:
    assert pod_requests({"containers": [{}]}) == {"pods": 1}
    assert pod_requests({"containers": [container(gpu="0")]}) == {"pods": 1}
