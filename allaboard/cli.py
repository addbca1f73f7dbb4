"""The command line. Commands only parse, call and print; what they need is imported when they run."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer

from allaboard.errors import UserError
from allaboard.local.cli import app as local
from allaboard.offline import app as offline
from allaboard.options import (
    HOST,
    PROFILES,
    CertDir,
    Evict,
    ExtenderPort,
    Identity,
    Kubeconfig,
    LeaderElection,
    LeaseOption,
    MinRuntime,
    ProbePort,
    Profiles,
    ScaleUpAfter,
    SecretOption,
    Service,
    StateDir,
    Unprotected,
    WebhookHost,
    WebhookPort,
)
from allaboard.running import ask, say
from allaboard.status.commands import app as status

if TYPE_CHECKING:
    from allaboard.dev.settings import Settings

app = typer.Typer(
    help="Gang scheduling for multi-node GPU work on the stock kube-scheduler.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(local, name="local")
app.add_typer(offline)
app.add_typer(status)


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
    profiles: Profiles = PROFILES,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Run a kube-scheduler for these profiles, too.")
    ] = True,
    webhook_host: WebhookHost = HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Only remove the webhook's registration, then exit.")
    ] = False,
    scale_up_after: ScaleUpAfter = None,
    evict: Evict = "",
    min_runtime: MinRuntime = 0.0,
    unprotected: Unprotected = "",
) -> None:
    """Run webhook, extender and kube-scheduler outside the cluster.

    Installs CRDs and default objects that are missing, registers the webhook by URL, and prints "ready"
    alone on a line once a dry-run Pod came back mutated. A part that dies is started again. SIGTERM or
    Ctrl-C: everything is stopped, the registration is removed, exit code 0.
    """
    from allaboard.dev import parts
    from allaboard.dev.settings import rules

    settings = _settle(
        kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir, unprotected
    )
    settings = replace(settings, rules=rules(evict, min_runtime), scale_up_after=scale_up_after)
    if cleanup:
        removed = ask(parts.clean_up(settings))
        say("the registration is removed" if removed else "there was no registration")
        return
    _serve(lambda stop: parts.serve_all(settings, with_scheduler=scheduler, stop=stop, say=say, ready=_ready))


@app.command()
def webhook(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = PROFILES,
    webhook_host: WebhookHost = HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    register: Annotated[
        bool, typer.Option("--register/--no-register", help="Register with the API server while it runs.")
    ] = True,
    service: Service = "",
    secret: SecretOption = "",
    cert_dir: CertDir = None,
) -> None:
    """Run the webhook alone. Prints "ready" when it answers."""
    from allaboard.dev import parts
    from allaboard.serve import webhook as in_pod

    settings = _settle(kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir)
    if service:
        options = in_pod.settle(settings, service, secret)
        _serve(lambda stop: in_pod.serve(options, cert_dir, stop, _ready))
        return
    _serve(lambda stop: parts.serve_webhook(settings, registered=register, stop=stop, say=say, ready=_ready))


@app.command()
def extender(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = PROFILES,
    webhook_host: WebhookHost = HOST,
    webhook_port: WebhookPort = 0,
    extender_port: ExtenderPort = 0,
    state_dir: StateDir = None,
    leader_election: LeaderElection = "none",
    lease: LeaseOption = "",
    identity: Identity = "",
    probe_port: ProbePort = None,
    scale_up_after: ScaleUpAfter = None,
    evict: Evict = "",
    min_runtime: MinRuntime = 0.0,
    unprotected: Unprotected = "",
) -> None:
    """Run the extender alone. Prints "ready" when its caches are synced, also where another one leads."""
    from allaboard.dev import parts
    from allaboard.dev.settings import election, rules

    settings = _settle(
        kubeconfig, profiles, webhook_host, webhook_port, extender_port, state_dir, unprotected
    )
    settings = replace(
        settings,
        election=election(leader_election, lease, identity),
        rules=rules(evict, min_runtime),
        scale_up_after=scale_up_after,
    )
    _serve(lambda stop: parts.serve_extender(settings, stop=stop, ready=_ready, probe_port=probe_port))


@app.command("install")
def install(kubeconfig: Kubeconfig = None, profiles: Profiles = PROFILES, state_dir: StateDir = None) -> None:
    """Create KAI's CRDs and default objects where they are missing, and change nothing that is there."""
    from allaboard.dev import parts

    ask(parts.put_in_place(_settle(kubeconfig, profiles, HOST, 0, 0, state_dir)))


@app.command("scheduler-config")
def scheduler_config(
    kubeconfig: Kubeconfig = None,
    profiles: Profiles = PROFILES,
    webhook_host: WebhookHost = HOST,
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


def main() -> None:
    """Entry point of `allaboard`: user errors are one line and exit code 1."""
    from extender.api import ApiError, KubeconfigError

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        app(prog_name=_called())
    except (UserError, KubeconfigError, ApiError, OSError) as error:
        _fail(error)
    except ExceptionGroup as group:
        _fail(_first(group))


def _called() -> str:
    """What the user has typed to call us."""
    name = Path(sys.argv[0]).name
    return "kubectl allaboard" if name.startswith("kubectl-") else "allaboard"


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

    ask(until_signalled())


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
    say(f"error: {error}")
    raise SystemExit(1)
