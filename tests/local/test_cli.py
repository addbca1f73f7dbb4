"""The commands as typed: exit codes, where results go, and errors that say what is allowed."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from allaboard.local.cli import app
from allaboard.local.cluster import Cluster

run = CliRunner().invoke

ALLOWED = 'allowed: up to 32 lower-case letters, digits and inner dashes, e.g. "demo-2"'


def test_a_name_that_could_not_be_a_folder_is_refused(own_state: Path) -> None:
    for command in ("up", "down", "status", "kubeconfig"):
        result = run(app, [command, "--name", "../etc"])
        assert result.exit_code == 1
        assert result.stderr == f'error: --name "../etc": {ALLOWED}\n'


@pytest.mark.parametrize("command", ["status", "kubeconfig"])
def test_asking_for_a_cluster_that_is_not_there_fails_and_says_how_to_start_it(
    own_state: Path, command: str
) -> None:
    result = run(app, [command, "--name", "one"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: there is no cluster one (start it: allaboard local up --name one)\n"


def test_down_is_content_when_there_is_nothing_to_stop(own_state: Path) -> None:
    result = run(app, ["down", "--name", "one"])
    assert result.exit_code == 0
    assert result.stderr == "there is no cluster one: nothing to stop\n"


def test_a_state_folder_that_can_not_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    result = run(app, ["down", "--name", "one"])
    assert result.exit_code == 1
    assert result.stderr == "error: [Errno 20] Not a directory: '/dev/null/allaboard/local'\n"


def test_impossible_numbers_of_nodes_are_refused_with_the_limit(own_state: Path) -> None:
    result = run(app, ["up", "--name", "one", "--cliques", "-1"])
    assert result.exit_code == 2
    assert "greater than or equal to 0" in " ".join(result.stderr.split())


@pytest.mark.cluster
def test_status_tells_processes_and_nodes_and_kubeconfig_only_the_path(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(cluster.kubeconfig.parents[3]))
    shown = run(app, ["status", "--name", cluster.name])
    assert shown.exit_code == 0
    assert shown.stdout.count("running, pid ") == 5
    assert shown.stdout.splitlines()[-1] == "nodes       74: 72 in 4 cliques, 2 without a clique"
    assert run(app, ["kubeconfig", "--name", cluster.name]).stdout == f"{cluster.kubeconfig}\n"
