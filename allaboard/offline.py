"""Commands on files, which need no running Allaboard: simulate, snapshot, translate."""

from pathlib import Path
from typing import Annotated

import typer

from allaboard.errors import UserError
from allaboard.options import PROFILES, Kubeconfig, Profiles
from allaboard.running import ask, say

app = typer.Typer()


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

    typer.echo(ask(take(find_kubeconfig(kubeconfig))), nl=False)


@app.command()
def translate(
    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", help="Manifests; may be given again, e.g. for Topologies and Namespaces."
        ),
    ],
    profiles: Profiles = PROFILES,
) -> None:
    """Print what the webhook would do with the workloads of these files, and which gangs result.

    Needs no cluster. Exit code 1, with a line for each, where something can't be understood.
    """
    from allaboard.translate.command import run

    rendered, problems = run(file, profiles)
    typer.echo(rendered, nl=False)
    for problem in problems:
        say(f"error: {problem}")
    if problems:
        raise typer.Exit(1)
