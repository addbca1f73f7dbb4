"""`allaboard local`: the commands. They only parse, call and print; results on stdout, progress on stderr."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from allaboard.local import cluster
from allaboard.local.binaries import find, provide
from allaboard.local.errors import LocalError
from allaboard.local.nodes import Fleet
from allaboard.local.tools import KUBERNETES_VERSION, TOOLS
from extender.api import ApiError, Json, KubeconfigError, connect
from gangs import contract

app = typer.Typer(
    help="A real control plane on this machine, with fake GPU nodes (etcd, Kubernetes, KWOK; no containers).",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Option("--name", help="Which cluster; several can run side by side.")]


@app.command()
def up(
    name: Name = cluster.DEFAULT_NAME,
    cliques: Annotated[int, typer.Option(min=0, max=9999, help="NVLink cliques (racks) of GPU nodes.")] = 0,
    nodes_per_clique: Annotated[int, typer.Option(min=1, max=99, help="Nodes in each clique.")] = 18,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs on each node of a clique.")] = 4,
    plain_nodes: Annotated[int, typer.Option(min=0, max=9999, help="Nodes without GPUs or clique.")] = 0,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Run the stock kube-scheduler.")
    ] = True,
) -> None:
    """Start a cluster; on one that runs already, add the nodes that are missing.

    The first start builds the binaries, which takes minutes.
    """
    fleet = Fleet(cliques, nodes_per_clique, gpus, plain_nodes)
    with _for_people(), _stoppable():
        result = cluster.up(name, fleet=fleet, scheduler=scheduler, say=_say)
        kubectl = find("kubectl")
    _say(_summary(result))
    typer.echo(f"export KUBECONFIG={result.kubeconfig}")
    _say(f"then: {kubectl} get nodes")


@app.command()
def down(name: Name = cluster.DEFAULT_NAME) -> None:
    """Stop a cluster and throw away all that it kept."""
    with _for_people():
        there = cluster.down(name, say=_say)
    _say(
        f"cluster {name} is stopped and removed" if there else f"there is no cluster {name}: nothing to stop"
    )


@app.command()
def status(name: Name = cluster.DEFAULT_NAME) -> None:
    """Show what runs; exit code 1 unless the whole cluster does."""
    with _for_people():
        found = cluster.status(name)
    if found is None:
        _fail(f"there is no cluster {name} (start it: allaboard local up --name {name})")
    typer.echo(f"cluster     {name}, Kubernetes {KUBERNETES_VERSION}, {found.settings.server}")
    typer.echo(f"kubeconfig  {found.layout.kubeconfig}")
    for component, process in found.running.items():
        state = f"running, pid {process.pid}" if process else f"down, log {found.layout.log(component)}"
        typer.echo(f"{component:<24} {state}")
    if not found.whole:
        _fail(f"parts of it are down: `allaboard local up --name {name}` brings them back")
    with _for_people():
        typer.echo(f"nodes       {asyncio.run(_node_summary(found))}")


@app.command()
def kubeconfig(name: Name = cluster.DEFAULT_NAME) -> None:
    """Print the path of the kubeconfig: export KUBECONFIG=$(allaboard local kubeconfig)."""
    with _for_people():
        found = cluster.status(name)
    if found is None:
        _fail(f"there is no cluster {name} (start it: allaboard local up --name {name})")
    typer.echo(found.layout.kubeconfig)


@app.command()
def which(tool: Annotated[str, typer.Argument(help="For example kubectl.")]) -> None:
    """Print the path of one of the cluster's binaries."""
    with _for_people():
        typer.echo(find(tool))


@app.command()
def build(
    tools: Annotated[
        list[str] | None, typer.Argument(help="Default: what a cluster needs. helm: for the chart's tests.")
    ] = None,
) -> None:
    """Build the binaries that are missing, without starting anything.

    They are kept in the user's cache folder. A folder named by ALLABOARD_BIN_DIR or KUBEBUILDER_ASSETS is
    used for whatever it holds.
    """
    with _for_people(), _stoppable():
        found = provide(tools or TOOLS, _say)
    for tool, path in found.items():
        typer.echo(f"{tool:<24} {path}")


def _summary(result: cluster.Cluster) -> str:
    nodes = f", {result.nodes_added} nodes added" if result.nodes_added else ""
    if not result.started:
        return f"cluster {result.name} was running already at {result.server}{nodes}"
    return f"cluster {result.name} is up at {result.server} after {result.seconds:.1f} s{nodes}"


async def _node_summary(found: cluster.Status) -> str:
    api = await connect(found.layout.kubeconfig)
    try:
        items: list[Json] = (await api.get("/api/v1/nodes") or {}).get("items", [])
    finally:
        await api.close()
    sizes = Counter(item["metadata"]["labels"].get(contract.NODE_CLIQUE) for item in items)
    plain = sizes.pop(None, 0)
    return f"{len(items)}: {sizes.total()} in {len(sizes)} cliques, {plain} without a clique"


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _fail(message: str) -> NoReturn:
    _say(f"error: {message}")
    raise typer.Exit(1)


@contextmanager
def _for_people() -> Iterator[None]:
    try:
        yield
    except (LocalError, ApiError, KubeconfigError, OSError) as error:
        _fail(str(error))


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: unwind, so that whoever started processes stops them."""

    def stop(number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # an impatient second Ctrl-C must not stop the stopping
        _say("interrupted: stopping what was started")
        raise SystemExit(128 + number)

    before: dict[int, Callable[..., object] | int | None] = {
        number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
