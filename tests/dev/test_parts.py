"""The parts started one by one with the same flags: together they do what dev does, and each may die."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster
from extender.api import Api
from tests.dev.running import REGISTRATION, once, running
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

MEMBERS = 3


@pytest.fixture
def flags(cluster: Cluster, tmp_path: Path) -> tuple[str | Path, ...]:
    """What every part is given."""
    return "--kubeconfig", cluster.kubeconfig, "--state-dir", tmp_path, "--profiles", "allaboard"


@pytest.fixture
def scheduler(flags: tuple[str | Path, ...], tmp_path: Path) -> Iterator[None]:
    """A kube-scheduler with the configuration that scheduler-config prints."""
    config = tmp_path / "config.yaml"
    config.write_text(once("scheduler-config", *flags).stdout)
    command = [str(find("kube-scheduler")), f"--config={config}", "--secure-port=0"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        yield
        process.terminate()


async def test_a_gang_boards_by_parts_that_were_started_alone_and_one_of_them_anew(
    flags: tuple[str | Path, ...], scheduler: None, api: Api, namespace: str
) -> None:
    with running("webhook", *flags) as webhook:
        webhook.until_ready()
        with running("extender", *flags) as extender:
            extender.until_ready()
            await board(api, namespace, "first")
            extender.stop(signal.SIGKILL)
        for index in range(MEMBERS):
            await api.create(pods(namespace), member("second", index))
        with running("extender", *flags) as extender:
            extender.until_ready()
            await eventually(lambda: are_bound(api, namespace, "second"))
            assert extender.stop(signal.SIGTERM) == 0
        assert webhook.stop(signal.SIGTERM) == 0
    assert await api.get(REGISTRATION) is None


async def board(api: Api, namespace: str, gang: str) -> None:
    for index in range(MEMBERS):
        await api.create(pods(namespace), member(gang, index))
    await eventually(lambda: are_bound(api, namespace, gang))


async def are_bound(api: Api, namespace: str, gang: str) -> bool:
    found = (await api.get(pods(namespace), {"labelSelector": f"allaboard.dev/gang={gang}"}) or {})["items"]
    return len([pod for pod in found if pod["spec"].get("nodeName")]) == MEMBERS


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def member(gang: str, index: int) -> dict[str, Any]:
    annotations = {"allaboard.dev/min-member": str(MEMBERS)}
    limits = {"nvidia.com/gpu": "4"}
    container = {"name": "c", "image": "registry.invalid/c:0", "resources": {"limits": limits}}
    return {
        "metadata": {
            "name": f"{gang}-{index}",
            "labels": {"allaboard.dev/gang": gang},
            "annotations": annotations,
        },
        "spec": {"schedulerName": "allaboard", "containers": [container]},
    }
