"""make and CI on a machine where something is missing: they say what, and never pretend."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_VENV = 'case "$*" in *ensurepip*) exit 1;; *print*) echo 3.11;; esac'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with its scripts, on a machine that has nothing but a few commands in bin."""
    (tmp_path / ".ci").mkdir()
    for name in ("bootstrap", "run"):
        shutil.copy(ROOT / ".ci" / name, tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for command in ("sh", "bash", "dirname", "sed", "cat"):
        (tmp_path / "bin" / command).symlink_to(shutil.which(command) or "")
    return tmp_path


def command(clone: Path, name: str, script: str) -> None:
    file = clone / "bin" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def run(clone: Path, script: str) -> subprocess.CompletedProcess[str]:
    # Any file will do: that the system has certificates is not in question here.
    environment = {"PATH": str(clone / "bin"), "SSL_CERT_FILE": str(clone / "bin" / "sh")}
    return subprocess.run(
        [clone / ".ci" / script], env=environment, capture_output=True, text=True, check=False
    )


def test_without_a_recent_python_setup_says_which_ones_it_looked_for(clone: Path) -> None:
    command(clone, "python3", "exit 1")  # too old: the version check fails
    answer = run(clone, "bootstrap")
    assert answer.returncode == 1
    assert answer.stderr == (
        "setup: no Python 3.11 or later found (looked for python3 and python3.11 to python3.14): "
        "install one\n"
    )


def test_without_venv_and_without_root_setup_names_the_package_to_install(clone: Path) -> None:
    command(clone, "python3", NO_VENV)
    command(clone, "id", "echo 1000")
    answer = run(clone, "bootstrap")
    assert answer.returncode == 1
    assert answer.stderr == (
        "setup: python3 can't make virtual environments: install the package python3.11-venv "
        "(apt-get install python3.11-venv)\n"
    )


def test_without_venv_root_gets_the_package_installed(clone: Path) -> None:
    command(clone, "python3", NO_VENV)
    command(clone, "id", "echo 0")
    command(clone, "apt-get", f'echo "$*" >> {clone}/apt; [ "$1" = update ]')
    answer = run(clone, "bootstrap")
    assert (clone / "apt").read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends python3.11-venv",
    ]
    assert answer.stderr.endswith("setup: apt-get could not install python3.11-venv\n")


@pytest.mark.parametrize("failing", ["check", "test"])
def test_ci_fails_if_either_part_does_and_still_runs_both(clone: Path, failing: str) -> None:
    command(clone, "make", f'echo "make $1"; [ "$1" != {failing} ]')
    answer = run(clone, "run")
    assert answer.returncode != 0
    assert answer.stdout == "make check\nmake test\n"


def test_ci_passes_if_both_parts_do(clone: Path) -> None:
    command(clone, "make", "exit 0")
    assert run(clone, "run").returncode == 0


def test_make_help_lists_every_target() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    targets = {line.removeprefix(".PHONY: ") for line in lines if line.startswith(".PHONY: ")}
    shown = subprocess.run(
        ["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    assert {
        line.split()[1] for line in shown.splitlines() if line.startswith("make ") and "  " in line
    } == targets
