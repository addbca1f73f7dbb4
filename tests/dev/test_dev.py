"""`allaboard dev` on a real control plane: when it says ready, how it ends, and what it leaves behind."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from allaboard.local.cluster import Cluster
from extender.api import Api
from tests.dev.running import REGISTRATION, Running, once, processes_of, running
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

NAMESPACES = "/api/v1/namespaces"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kai-scheduler/deployments"
PROBE = {
    "metadata": {"generateName": "probe-", "labels": {"allaboard.dev/gang": "probe"}},
    "spec": {"schedulerName": "allaboard", "containers": [{"name": "c", "image": "registry.invalid/c:0"}]},
}


async def gates(api: Api) -> list[str]:
    """The gates of a dry-run Pod that asks for a gang."""
    pod = await api.create("/api/v1/namespaces/default/pods", PROBE, {"dryRun": "All"})
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]


async def registered_urls(api: Api) -> set[str]:
    found = await api.get(REGISTRATION) or {"webhooks": ()}
    return {entry["clientConfig"]["url"] for entry in found["webhooks"]}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of dev."""
    return tmp_path_factory.mktemp("dev")


@pytest.fixture(scope="module")
def dev(cluster: Cluster, state: Path) -> Iterator[Running]:
    """One `allaboard dev`, ready, for all tests that only look at it."""
    with running("dev", "--kubeconfig", cluster.kubeconfig, "--state-dir", state) as process:
        process.until_ready()
        yield process


async def test_once_it_is_ready_pods_are_mutated_and_no_entry_can_block_anybody(
    dev: Running, api: Api
) -> None:
    assert await gates(api) == ["allaboard.dev/boarding"]
    found = await api.get(REGISTRATION)
    assert found is not None
    assert {entry["failurePolicy"] for entry in found["webhooks"]} == {"Ignore"}


async def test_missing_kinds_and_default_objects_are_there(dev: Running, api: Api) -> None:
    for path in (
        "/apis/kai.scheduler/v1alpha1/topologies/nvcf-mnnvl-topology",
        "/apis/scheduling.run.ai/v2/queues/default-queue",
        "/apis/scheduling.run.ai/v2/queues/default-parent-queue",
        "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups",
    ):
        assert await api.get(path) is not None, path


async def test_a_part_that_is_killed_comes_back_at_the_same_address(
    dev: Running, state: Path, api: Api
) -> None:
    for part in ("extender", "webhook", "kube-scheduler"):
        os.kill(dev.child(part), signal.SIGKILL)
        assert f"{state / part}.log" in dev.until_told(rf"^{part} ended \(SIGKILL\); it is started again in ")

    async def all_answer() -> bool:
        return _answers(f"{extender_url(state)}/readyz") and await gates(api) != []

    await eventually(all_answer, within=30)


async def test_a_part_alone_with_the_same_state_folder_uses_the_same_ports(
    dev: Running, cluster: Cluster, state: Path
) -> None:
    flags = ("--kubeconfig", cluster.kubeconfig, "--state-dir", state)
    shown = once("scheduler-config", *flags)
    assert shown.returncode == 0
    assert shown.stdout == (state / "kube-scheduler.yaml").read_text()
    beside = once("extender", *flags)
    assert beside.returncode == 1
    port = extender_url(state).rpartition(":")[2]
    assert f"('127.0.0.1', {port})" in beside.stderr
    assert "Traceback" not in beside.stderr


async def test_sigterm_ends_it_with_0_and_leaves_nothing(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    with running("dev", "--kubeconfig", cluster.kubeconfig, "--state-dir", tmp_path, "--no-scheduler") as dev:
        dev.until_ready()
        assert dev.stop(signal.SIGTERM) == 0
    assert dev.said == ["ready"]
    assert await api.get(REGISTRATION) is None
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "kube-scheduler.yaml").exists()


async def test_what_a_killed_run_left_is_replaced_and_its_parts_died_with_it(
    cluster: Cluster, api: Api, tmp_path: Path
) -> None:
    flags = ("--kubeconfig", cluster.kubeconfig, "--no-scheduler", "--state-dir")
    with running("dev", *flags, tmp_path / "one") as killed:
        killed.until_ready()
        killed.stop(signal.SIGKILL)
    left = await registered_urls(api)
    assert len(left) == 1

    async def parts_are_gone() -> bool:
        return processes_of(tmp_path / "one") == []

    await eventually(parts_are_gone)
    with running("dev", *flags, tmp_path / "two") as dev:
        dev.until_ready()
        assert await gates(api) == ["allaboard.dev/boarding"]
        assert (await registered_urls(api)).isdisjoint(left)
        assert dev.stop(signal.SIGINT) == 0
    assert await api.get(REGISTRATION) is None


async def test_cleanup_removes_the_registration_and_says_whether_there_was_one(
    cluster: Cluster, api: Api, tmp_path: Path
) -> None:
    flags = ("--kubeconfig", cluster.kubeconfig, "--state-dir", tmp_path)
    with running("dev", *flags, "--no-scheduler") as killed:
        killed.until_ready()
        killed.stop(signal.SIGKILL)
    first, second = once("dev", *flags, "--cleanup"), once("dev", *flags, "--cleanup")
    assert (first.returncode, first.stderr) == (0, "the registration is removed\n")
    assert (second.returncode, second.stderr) == (0, "there was no registration\n")
    assert await api.get(REGISTRATION) is None


async def test_an_address_that_the_api_server_can_not_reach_is_told_with_what_to_do(
    cluster: Cluster, api: Api, tmp_path: Path
) -> None:
    flags = ("--kubeconfig", cluster.kubeconfig, "--state-dir", tmp_path, "--no-scheduler")
    # TEST-NET-1 (RFC 5737): nobody has this address.
    with running("dev", *flags, "--webhook-host", "192.0.2.1", "--webhook-port", "9443") as dev:
        told = dev.until_told("not ready after")
        assert "the API server does not reach the webhook at https://192.0.2.1:9443/mutate" in told
        assert "--webhook-host ADDRESS" in told
        assert dev.stop(signal.SIGTERM) == 0
        assert dev.said == []
    assert await api.get(REGISTRATION) is None


async def test_beside_a_real_kai_its_name_is_left_to_it(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "kai-scheduler"}})
    await api.create(DEPLOYMENTS, _deployment("kai-scheduler-default"))
    flags = ("--kubeconfig", cluster.kubeconfig, "--state-dir", tmp_path, "--no-scheduler")
    refused = once("dev", *flags)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "error: --profiles: a KAI Scheduler runs in this cluster (namespace kai-scheduler) and serves "
        "kai-scheduler itself; leave it to it: --profiles allaboard\n"
    )
    with running("dev", *flags, "--profiles", "allaboard") as dev:
        dev.until_ready()
    await api.delete(DEPLOYMENTS)
    await api.delete(f"{NAMESPACES}/kai-scheduler")


def extender_url(state: Path) -> str:
    return str(yaml.safe_load((state / "kube-scheduler.yaml").read_text())["extenders"][0]["urlPrefix"])


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _deployment(name: str) -> dict[str, object]:
    labels = {"app": name}
    container = {"name": "scheduler", "image": "registry.invalid/kai:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
