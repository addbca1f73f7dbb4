"""Daemons and pid files: what runs on is ours, what merely has the same pid is not."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from allaboard.local import processes
from allaboard.local.processes import Process

SLEEP = ["/bin/sleep", "60"]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Process]:
    process = processes.spawn(SLEEP, tmp_path / "log", tmp_path / "pid")
    yield process
    processes.kill([process])


def test_a_pid_file_leads_back_to_the_running_process(daemon: Process, tmp_path: Path) -> None:
    assert Process.read(tmp_path / "pid") == daemon


def test_a_killed_process_is_gone_altogether(daemon: Process, tmp_path: Path) -> None:
    processes.kill([daemon])
    assert not Path(f"/proc/{daemon.pid}").exists()
    assert Process.read(tmp_path / "pid") is None


def test_a_later_process_with_the_same_pid_is_not_taken_for_ours(daemon: Process, tmp_path: Path) -> None:
    replace(daemon, started=daemon.started - 1).write(tmp_path / "pid")
    assert Process.read(tmp_path / "pid") is None


def test_a_pid_file_from_before_a_reboot_is_stale(daemon: Process, tmp_path: Path) -> None:
    replace(daemon, boot="another-boot").write(tmp_path / "pid")
    assert Process.read(tmp_path / "pid") is None


def test_a_stale_process_is_never_killed(daemon: Process) -> None:
    processes.kill([replace(daemon, started=daemon.started - 1)])
    assert daemon.alive()


@pytest.mark.parametrize("content", ["", "12", "x y z", "1 2 3 4"])
def test_a_pid_file_that_was_cut_off_names_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)
    assert Process.read(tmp_path / "pid") is None


def test_what_a_daemon_prints_is_in_its_log(tmp_path: Path) -> None:
    process = processes.spawn(["/bin/sh", "-c", "echo out; echo err >&2"], tmp_path / "log", tmp_path / "pid")
    while process.alive():
        os.sched_yield()
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_a_daemon_outlives_the_command_that_started_it_and_its_ctrl_c(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from allaboard.local.processes import spawn;"
        "spawn(['/bin/sleep', '60'], Path(sys.argv[1]) / 'log', Path(sys.argv[1]) / 'pid')"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], start_new_session=True)
    assert starter.wait() == 0
    process = Process.read(tmp_path / "pid")
    assert process is not None
    assert os.getsid(process.pid) == process.pid
    processes.kill([process])


def test_a_daemon_can_be_stopped_by_signals_that_its_starter_held_back(tmp_path: Path) -> None:
    process = processes.spawn(SLEEP, tmp_path / "log", tmp_path / "pid")
    os.kill(process.pid, signal.SIGTERM)
    while process.alive():
        os.sched_yield()
    assert Process.read(tmp_path / "pid") is None
