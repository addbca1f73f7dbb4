"""The commands as others call them: names and options that must stay, help for each, exit codes."""

from importlib.metadata import version
from typing import Any

import pytest
import typer.main

from allaboard.cli import app
from tests.dev.running import once

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
COMMON = {"--kubeconfig", "--profiles", "--webhook-host", "--webhook-port", "--extender-port", "--state-dir"}


def options(command: str) -> dict[str, Any]:
    return {name: option for option in COMMANDS[command].params for name in option.opts}


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("dev", {"--no-scheduler", "--cleanup"}),
        ("webhook", set()),
        ("extender", set()),
        ("scheduler-config", set()),
    ],
)
def test_the_parts_take_the_flags_of_dev(command: str, own: set[str]) -> None:
    secondary = {name for option in COMMANDS[command].params for name in option.secondary_opts}
    assert options(command).keys() | secondary >= COMMON | own


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"local"}))
def test_every_command_and_option_is_explained(command: str) -> None:
    assert COMMANDS[command].help
    unexplained = [name for name, option in options(command).items() if not option.help and not option.hidden]
    assert unexplained == []


def test_switching_protections_off_is_nothing_that_help_suggests() -> None:
    assert options("dev")["--unprotected"].hidden
    assert "--unprotected" not in once("dev", "--help").stdout


def test_the_version_is_that_of_the_package() -> None:
    assert once("--version").stdout == f"{version('allaboard')}\n"


def test_a_mistyped_command_is_a_usage_error() -> None:
    ended = once("devel")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "No such command 'devel'" in ended.stderr
