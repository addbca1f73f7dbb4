"""The life of a cluster: up, again up, beside another, after a crash, and down without a trace."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copy

import pytest

from allaboard.local import binaries
from allaboard.local.cluster import Cluster, Status, down, status, up
from allaboard.local.errors import LocalError
from allaboard.local.nodes import Fleet, add
from allaboard.local.processes import Process, kill, spawn
from extender.api import Api, connect
from tests.conftest import FLEET

pytestmark = pytest.mark.cluster


def living(name: str) -> Status:
    found = status(name)
    assert found is not None
    return found


def pids(name: str) -> dict[str, int]:
    return {c: process.pid for c, process in living(name).running.items() if process}


def mentioning(text: str) -> list[str]:
    """Command lines of all processes on the machine that mention text, this one aside."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and path.parent.name != str(os.getpid()):
            lines.append(line)
    return lines


async def test_only_missing_nodes_are_added(api: Api) -> None:
    more = Fleet(FLEET.cliques, FLEET.nodes_per_clique, FLEET.gpus, plain=FLEET.plain + 3)
    assert await add(api, more) == 3
    for index in range(FLEET.plain, more.plain):
        await api.delete(f"/api/v1/nodes/p{index:04}")


async def test_no_fake_node_is_ever_tainted(api: Api) -> None:
    nodes = (await api.get("/api/v1/nodes") or {})["items"]
    assert len(nodes) == 4 * 18 + 2
    assert [node["spec"].get("taints") for node in nodes] == [None] * len(nodes)


def test_two_clusters_run_side_by_side_and_one_goes_down_without_the_other(own_state: Path) -> None:
    one, two = up("one"), up("two", scheduler=False)
    assert one.server != two.server
    assert set(pids("one")) - set(pids("two")) == {"kube-scheduler"}
    assert down("one")
    assert mentioning(f"{own_state}/one/") == []
    assert living("two").whole
    assert down("two")
    assert mentioning(str(own_state)) == []
    assert [path.name for path in own_state.iterdir() if path.is_dir()] == []


def test_a_cluster_that_runs_is_left_as_it_is_and_what_was_killed_comes_back(own_state: Path) -> None:
    up("one")
    before = pids("one")
    assert up("one").started == ()
    assert pids("one") == before
    with pytest.raises(LocalError, match="cluster one runs with kube-scheduler and can't go on without it"):
        up("one", scheduler=False)
    victims = [living("one").running[c] for c in ("kube-apiserver", "kwok")]
    kill(process for process in victims if process)
    assert up("one", fleet=Fleet(plain=1)).started == ("kube-apiserver", "kwok")
    assert {c for c, pid in pids("one").items() if pid != before[c]} == {"kube-apiserver", "kwok"}


def test_after_a_crash_up_starts_anew_and_touches_no_stranger_with_an_old_pid(own_state: Path) -> None:
    up("one", fleet=Fleet(plain=1))
    kill(process for process in living("one").running.values() if process)
    stranger = spawn(["/bin/sleep", "60"], own_state / "log", own_state / "pid")
    reused = Process(stranger.pid, stranger.started - 1, stranger.boot)
    reused.write(own_state / "one" / "pids" / "etcd")
    said: list[str] = []
    again = up("one", fleet=Fleet(plain=1), say=said.append)
    assert said == ["cluster one did not survive a crash or reboot: starting anew"]
    assert again.started[0] == "etcd"
    assert again.nodes_added == 1
    assert stranger.alive()
    kill([stranger])


def test_a_component_that_fails_is_named_with_the_end_of_its_log_and_nothing_is_left(
    own_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "bin"
    given.mkdir()
    broken = given / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho no disk left on device >&2\nexit 3\n")
    broken.chmod(0o755)
    (given / "etcd").symlink_to(binaries.find("etcd"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", os.environ.get("ALLABOARD_BIN_DIR", ""))
    monkeypatch.setenv("ALLABOARD_BIN_DIR", str(given))
    with pytest.raises(LocalError) as failure:
        up("one")
    assert str(failure.value) == (
        "kube-apiserver ended at once. The end of its log:\n  no disk left on device"
    )
    assert mentioning(f"{own_state}/one/") == []
    assert status("one") is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_no_process(own_state: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "allaboard.local", "up", "--name", "one"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as starting:
        while not (own_state / "one" / "pids" / "kube-apiserver").exists():
            assert starting.poll() is None
            time.sleep(0.02)
        starting.send_signal(number)
        _, said = starting.communicate(timeout=30)
    assert said == "interrupted: stopping what was started\n"
    assert starting.returncode == 128 + number
    assert mentioning(f"{own_state}/one/") == []
    assert status("one") is None


async def test_the_kubeconfig_alone_is_enough_to_connect_as_an_administrator(
    cluster: Cluster, tmp_path: Path
) -> None:
    copied = await connect(Path(copy(cluster.kubeconfig, tmp_path)))
    review = {"spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}}
    answer = await copied.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    await copied.close()
    assert answer["status"]["allowed"] is True
