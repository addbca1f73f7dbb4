"""One local cluster, as Python sees it: up, down, status.

    up: lock ─► look at what runs ─► (wipe, keys, ports) ─► etcd ─► API server ─► the rest ─► nodes
    down: lock ─► kill what is proven ours ─► remove the state folder

A cluster whose etcd is gone is over: its data was never fsynced, so `up` starts anew. While etcd
lives, `up` only starts what is missing.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree
from typing import Final

from allaboard.local import components, nodes, pki, processes
from allaboard.local.binaries import provide
from allaboard.local.components import API_SERVER, ETCD, Settings
from allaboard.local.errors import LocalError
from allaboard.local.layout import Layout, clusters_folder, layout, locked
from allaboard.local.nodes import Fleet
from allaboard.local.ports import free_ports
from allaboard.local.processes import Process
from allaboard.local.readiness import wait_ready
from allaboard.local.tools import TOOLS
from extender.api import ApiError, connect

Say = Callable[[str], None]

DEFAULT_NAME: Final = "default"
_KWOK_RULES: Final = Path(__file__).with_name("kwok.yaml")
_CONTROLLERS_WITHIN: Final = 30.0  # seconds until the first ServiceAccount exists
_POLL: Final = 0.05  # seconds


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    started: the components that this call started, in order; empty if all ran already.
    nodes_added: fake nodes that this call created.
    seconds: what this call took, binaries aside.
    """

    name: str
    kubeconfig: Path
    server: str
    started: tuple[str, ...]
    nodes_added: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a cluster: its settings, and the live process of each component (None: it is down)."""

    settings: Settings
    layout: Layout
    running: dict[str, Process | None]

    @property
    def whole(self) -> bool:
        """Whether every component runs."""
        return all(self.running.values())


def up(
    name: str = DEFAULT_NAME, *, fleet: Fleet | None = None, scheduler: bool = True, say: Say = lambda _: None
) -> Cluster:
    """Start the cluster called name, or what is missing of it; returns when it takes Pods.

    Whatever goes wrong (a signal too), no process started here is left. Raises LocalError.
    """
    place = layout(name)
    provide(TOOLS, say)
    began = time.monotonic()
    with _lock(name, say):
        settings, fresh = _running_or_new(name, place, scheduler, say)
        started: list[str] = []
        try:
            _start_missing(settings, place, started)
            added = asyncio.run(_open_for_use(place, fleet or Fleet()))
        except BaseException:
            _undo(place, started, fresh)
            raise
    return Cluster(name, place.kubeconfig, settings.server, tuple(started), added, time.monotonic() - began)


def down(name: str = DEFAULT_NAME, *, say: Say = lambda _: None) -> bool:
    """Stop the cluster and remove all that it kept; False if there was none."""
    place = layout(name)
    with _lock(name, say):
        there = place.root.exists()
        _destroy(place)
    return there


def status(name: str = DEFAULT_NAME) -> Status | None:
    """What is known of the cluster, None if there is none."""
    place = layout(name)
    try:
        settings = Settings(**json.loads(place.settings.read_text()))
    except (OSError, ValueError, TypeError):
        return None  # absent, or cut off by a crash: either way nothing to go on with
    return Status(settings, place, {c: Process.read(place.pid(c)) for c in settings.components})


def _lock(name: str, say: Say) -> AbstractContextManager[None]:
    file = clusters_folder() / f".{name}.lock"  # stays: a removed lock file is one that two can hold
    return locked(file, lambda: say(f"cluster {name}: another up or down is at work, waiting"))


def _running_or_new(name: str, place: Layout, scheduler: bool, say: Say) -> tuple[Settings, bool]:
    """The settings to go on with, and whether they are those of a new cluster."""
    before = status(name)
    if before is not None and before.running[ETCD] is not None:
        if before.settings.scheduler != scheduler:
            raise LocalError(_other_scheduler(name, scheduler))
        return before.settings, False
    if before is not None:
        say(f"cluster {name} did not survive a crash or reboot: starting anew")
    _destroy(place)
    return _prepare(name, place, scheduler), True


def _prepare(name: str, place: Layout, scheduler: bool) -> Settings:
    place.make()
    settings = Settings(name, free_ports(components.PORTS), scheduler)
    pki.write_all(place.pki, place.kubeconfig, settings.context, settings.server)
    place.config(components.KWOK).write_bytes(_KWOK_RULES.read_bytes())
    place.config(components.SCHEDULER).write_text(components.scheduler_configuration(place))
    place.config(components.AUDIT).write_text(components.audit_policy())
    place.settings.write_text(json.dumps(asdict(settings), indent=2) + "\n")
    return settings


def _start_missing(settings: Settings, place: Layout, started: list[str]) -> None:
    # In waves: a component that starts before what it needs backs off for seconds.
    for wave in ((ETCD,), (API_SERVER,), settings.followers):
        for component in wave:
            if Process.read(place.pid(component)) is None:
                started.append(component)
                _start(component, settings, place)
        wait_ready([c for c in wave if c in started], settings, place)


def _start(component: str, settings: Settings, place: Layout) -> None:
    binary = provide([component], lambda _: None)[component]
    flags = components.arguments(component, settings, place)
    argv = [str(binary), *(f"--{flag}={value}" for flag, value in flags.items())]
    processes.spawn(argv, place.log(component), place.pid(component))


async def _open_for_use(place: Layout, fleet: Fleet) -> int:
    api = await connect(place.kubeconfig)
    try:
        # Until it exists, every Pod is refused; it is also the proof that the controllers work.
        deadline = time.monotonic() + _CONTROLLERS_WITHIN
        while await api.get("/api/v1/namespaces/default/serviceaccounts/default") is None:
            if time.monotonic() > deadline:
                raise LocalError(f"the default ServiceAccount was not created, see {place.log('*')}")
            await asyncio.sleep(_POLL)
        return await nodes.add(api, fleet)
    except ApiError as error:
        raise LocalError(f"the API server refused: {error}") from error
    finally:
        await api.close()


def _undo(place: Layout, started: list[str], fresh: bool) -> None:
    if fresh:
        _destroy(place)
    else:
        _kill_all([place.pid(component) for component in started])


def _destroy(place: Layout) -> None:
    _kill_all(list((place.root / "pids").glob("*")))
    if place.root.exists():
        rmtree(place.root)


def _kill_all(pid_files: list[Path]) -> None:
    processes.kill(filter(None, map(Process.read, pid_files)))


def _other_scheduler(name: str, wanted: bool) -> str:
    now, asked = ("without", "with") if wanted else ("with", "without")
    return (
        f"cluster {name} runs {now} kube-scheduler and can't go on {asked} it: `allaboard local down` first"
    )
