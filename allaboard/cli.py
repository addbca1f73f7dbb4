"""The command line. Commands only parse, call and print; what they need is imported when they run."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import structlog
import typer

from allaboard.errors import UserError
from allaboard.local.cli import app as local

Result = TypeVar("Result")

if TYPE_CHECKING:
    from allaboard.dev.settings import Settings

app = typer.Typer(
    help="Gang scheduling for multi-node GPU work on the stock kube-scheduler.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(local, name="local")

Kubeconfig = Annotated[
    Path | None, typer.Option(help="Cluster to work on. Default: $KUBECONFIG, else ~/.kube/config.")
]
Profiles = Annotated[
    str,
    typer.Option(
        help="Scheduler names that are served. default-scheduler may be among them; Pods that name any other "
        "scheduler are left as they are. kai-scheduler is refused while a real KAI runs."
    ),
]
WebhookHost = Annotated[
    str, typer.Option(help="Address of this machine under which the API server reaches the webhook.")
]
WebhookPort = Annotated[
    int, typer.Option(min=0, max=65535, help="0: the one in the state folder, else any free one.")
]
ExtenderPort = Annotated[
    int,
    typer.Option(min=0, max=65535, help="On 127.0.0.1. 0: the one in the state folder, else any free one."),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder for certificates, ports, logs and the generated configuration. "
        "Default: one per kubeconfig in $XDG_STATE_HOME/allaboard/dev."
    ),
]
Unprotected = Annotated[
    str, typer.Option(hidden=True, help="Protections switched off, to prove that a check notices.")
]

LeaderElection = Annotated[
    str,
    typer.Option(
        metavar="[none|own|scheduler]",
        help="Which of several extenders plans. none: this one is the only one. own: the holder of --lease. "
        "scheduler: the one beside the kube-scheduler that holds --lease.",
    ),
]
LeaseOption = Annotated[
    str, typer.Option("--lease", help="NAMESPACE/NAME. Default: allaboard-system/allaboard-scheduler.")
]
Identity = Annotated[
    str, typer.Option(help="Our name in the election, or kube-scheduler's beside us. Default: the host name.")
]

_PROFILES = "allaboard,kai-scheduler"
_HOST = "127.0.0.1"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("allaboard"))
        raise typer.Exit


@app.callback()
def top(
    show: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit."),
    ] = False,
) -> None:
    """Gang scheduling for multi-node GPU work on the stock kube-scheduler."""


@app.command()
def dev(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = _PROFILES,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Run a kube-scheduler for these profiles, too.")
    ] = True,
    webhook_host: WebhookHost = _HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Only remove the webhook's registration, then exit.")
    ] = False,
    unprotected: Unprotected = "",
) -> None:
    """Run webhook, extender and kube-scheduler outside the cluster.

    Installs CRDs and default objects that are missing, registers the webhook by URL, and prints "ready"
    alone on a line once a dry-run Pod came back mutated. A part that dies is started again. SIGTERM or
    Ctrl-C: everything is stopped, the registration is removed, exit code 0.
    """
    from allaboard.dev import parts

    settings = _settle(
        kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir, unprotected
    )
    if cleanup:
        removed = _ask(parts.clean_up(settings))
        _say("the registration is removed" if removed else "there was no registration")
        return
    _serve(
        lambda stop: parts.serve_all(settings, with_scheduler=scheduler, stop=stop, say=_say, ready=_ready)
    )


@app.command()
def webhook(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = _PROFILES,
    webhook_host: WebhookHost = _HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    register: Annotated[
        bool, typer.Option("--register/--no-register", help="Register with the API server while it runs.")
    ] = True,
) -> None:
    """Run the webhook alone. Prints "ready" when it answers."""
    from allaboard.dev import parts

    settings = _settle(kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir)
    _serve(lambda stop: parts.serve_webhook(settings, registered=register, stop=stop, say=_say, ready=_ready))


@app.command()
def extender(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = _PROFILES,
    webhook_host: WebhookHost = _HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    leader_election: LeaderElection = "none",
    lease: LeaseOption = "",
    identity: Identity = "",
    unprotected: Unprotected = "",
) -> None:
    """Run the extender alone. Prints "ready" when its caches are synced, also where another one leads."""
    from allaboard.dev import parts
    from allaboard.dev.settings import election

    settings = _settle(
        kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir, unprotected
    )
    settings = replace(settings, election=election(leader_election, lease, identity))
    _serve(lambda stop: parts.serve_extender(settings, stop=stop, ready=_ready))


@app.command("scheduler-config")
def scheduler_config(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = _PROFILES,
    webhook_host: WebhookHost = _HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    leader_election: LeaderElection = "none",
    lease: LeaseOption = "",
) -> None:
    """Print the KubeSchedulerConfiguration for a kube-scheduler that uses this extender."""
    from allaboard.dev.scheduler import rendered
    from allaboard.dev.settings import election

    settings = _settle(kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir)
    settings = replace(settings, election=election(leader_election, lease, ""))
    typer.echo(rendered(settings), nl=False)


@app.command()
def simulate(
    cluster: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Nodes, Pods and Topologies.")],
    gang: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Manifest of the workload.")],
    output: Annotated[str, typer.Option("-o", "--output", help="text or json")] = "text",
) -> None:
    """Say where a gang would board and why other domains can't take it. No cluster needed.

    Exit code 0: all gangs of the file board; 2: one does not.
    """
    import orjson

    from allaboard.simulate.run import as_json, as_text
    from allaboard.simulate.run import simulate as run

    if output not in ("text", "json"):
        raise UserError(f'--output: "{output}" is neither text nor json')
    outcomes = run(cluster, gang)
    if output == "json":
        told = orjson.dumps([as_json(o) for o in outcomes], option=orjson.OPT_INDENT_2)
        typer.echo(told.decode())
    else:
        typer.echo("\n".join(as_text(o) for o in outcomes))
    if any(o.placement is None for o in outcomes):
        raise SystemExit(2)


@app.command()
def snapshot(kubeconfig: Kubeconfig = None) -> None:
    """Print the cluster's Nodes, Pods and Topologies for simulate. Commands and environments are left out."""
    from allaboard.dev.settings import find_kubeconfig
    from allaboard.simulate.snapshot import snapshot as take

    typer.echo(_ask(take(find_kubeconfig(kubeconfig))), nl=False)


@app.command()
def translate(
    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", help="Manifests; may be given again, e.g. for Topologies and Namespaces."
        ),
    ],
    profiles: Profiles = _PROFILES,
) -> None:
    """Print what the webhook would do with the workloads of these files, and which gangs result.

    Needs no cluster. Exit code 1, with a line for each, where something can't be understood.
    """
    from allaboard.translate.command import run

    rendered, problems = run(file, profiles)
    typer.echo(rendered, nl=False)
    for problem in problems:
        _say(f"error: {problem}")
    if problems:
        raise typer.Exit(1)


def main() -> None:
    """Entry point of `allaboard`: user errors are one line and exit code 1."""
    from extender.api import ApiError, KubeconfigError

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        app()
    except (UserError, KubeconfigError, ApiError, OSError) as error:
        _fail(error)
    except ExceptionGroup as group:
        _fail(_first(group))


def _settle(
    kubeconfig: Path | None,
    profiles: str,
    webhook_host: str,
    webhook_port: int,
    extender_port: int,
    state_dir: Path | None,
    unprotected: str = "",
) -> "Settings":
    from allaboard.dev.settings import settle

    return settle(kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir, unprotected)


def _serve(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    async def until_signalled() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await work(stop)

    _ask(until_signalled())


def _ask(work: Coroutine[Any, Any, Result]) -> Result:
    import uvloop

    return uvloop.run(work)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _ready(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _fail(error: BaseException) -> None:
    if not isinstance(error, Exception):
        raise error
    _say(f"error: {error}")
    raise SystemExit(1)
