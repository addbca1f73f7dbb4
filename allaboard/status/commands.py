"""The commands on a running extender. Their exit codes: 0, and for explain 2 where the gang waits."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from allaboard.errors import UserError
from allaboard.options import Kubeconfig, StateDir
from allaboard.running import ask

FORMATS: Final = ("table", "wide", "json", "yaml")
_REFRESH_SECONDS: Final = 2.0
_MOVING: Final = ("Granted", "Boarding", "Aboard")

app = typer.Typer()

Extender = Annotated[
    str,
    typer.Option(
        "--extender",
        envvar="ALLABOARD_EXTENDER",
        help="URL of a running extender. Default: the one that `allaboard dev` runs for this kubeconfig.",
    ),
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="|".join(FORMATS), help="How to print.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Print anew every two seconds until Ctrl-C.")]


@app.command()
def gangs(
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Only gangs of this one.")] = "",
    extender: Extender = "",
    kubeconfig: Kubeconfig = None,
    state_dir: StateDir = None,
    output: Output = "table",
    watch: Watch = False,
) -> None:
    """List gangs: phase, members here of those that must board, domain, age, and why they wait."""
    from allaboard.status import tables

    def rows(found: Any) -> Any:
        return [row for row in found if not namespace or row["namespace"] == namespace]

    def table(found: Any) -> Any:
        return tables.gangs(found, time.time(), wide=output == "wide", namespaced=bool(namespace))

    url = _url(extender, kubeconfig, state_dir)
    _show(lambda: rows(_fetch(url, "gangs")), table, output, watch=watch)


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="A gang, its owner, or its Pod.")],
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Where it is.")] = "default",
    extender: Extender = "",
    kubeconfig: Kubeconfig = None,
    state_dir: StateDir = None,
    output: Output = "table",
    watch: Watch = False,
) -> None:
    """Say why a gang waits, and what each domain has and lacks.

    Exit code 0: it has its seats; 2: it waits.
    """
    from allaboard.status import tables

    where, _, what = name.rpartition("/")
    url = _url(extender, kubeconfig, state_dir)
    path = f"gang/{where or namespace}/{what}"
    told = _show(lambda: _fetch(url, path), tables.explained, output, watch=watch)
    if told["phase"] not in _MOVING:
        raise typer.Exit(2)


@app.command()
def top(
    extender: Extender = "",
    kubeconfig: Kubeconfig = None,
    state_dir: StateDir = None,
    output: Output = "table",
    watch: Watch = False,
) -> None:
    """Show the GPUs of each clique: used (#), promised to a gang that is boarding (=), free (.)."""
    from allaboard.status import tables

    url = _url(extender, kubeconfig, state_dir)
    _show(lambda: _fetch(url, "cliques"), tables.cliques, output, watch=watch)


def _fetch(url: str, path: str) -> Any:
    from allaboard.status.source import fetch

    return ask(fetch(url, path))


def _url(given: str, kubeconfig: Path | None, state_dir: Path | None) -> str:
    from allaboard.dev.settings import extender_url

    return given or extender_url(kubeconfig, state_dir)


def _show(read: Callable[[], Any], table: Callable[[Any], Any], output: str, *, watch: bool) -> Any:
    """Print what is read, again and again if asked to; what was read last."""
    if output not in FORMATS:
        raise UserError(f'--output: "{output}" is no format (allowed: {", ".join(FORMATS)})')
    found = read()
    _print(found, table, output)
    try:
        while watch:
            time.sleep(_REFRESH_SECONDS)
            found = read()
            _print(found, table, output, again=True)
    except KeyboardInterrupt:
        pass
    return found


def _print(found: Any, table: Callable[[Any], Any], output: str, *, again: bool = False) -> None:
    if output == "json":
        import orjson

        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    elif output == "yaml":
        import yaml

        typer.echo(yaml.safe_dump(found, sort_keys=False), nl=False)
    else:
        from rich.console import Console

        # Into a pipe no line is cut: whoever reads it decides what is too long.
        console = Console(width=None if sys.stdout.isatty() else 1000)
        if again and console.is_terminal:
            console.clear()
        console.print(table(found))
