"""Where things lie: the caches of this user, and the state folder of one cluster.

$XDG_CACHE_HOME/allaboard/bin/<source>-<version>/   binaries, shared by all clones on the machine
$XDG_STATE_HOME/allaboard/local/<name>/             one cluster: keys, data, logs, pid files
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from allaboard.local.errors import LocalError

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def cache_folder() -> Path:
    """Where built things are kept for every clone on this machine."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "allaboard"


def clusters_folder() -> Path:
    """The folder that holds one state folder per cluster."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "allaboard" / "local"


def _xdg(variable: str, default: str) -> Path:
    # The XDG specification: a relative path is invalid and to be ignored.
    given = Path(os.environ.get(variable, ""))
    return given if given.is_absolute() else Path.home() / default


@dataclass(frozen=True, slots=True)
class Layout:
    """The state folder of one cluster."""

    root: Path

    @property
    def kubeconfig(self) -> Path:
        """What clients and components connect by; the user is in system:masters."""
        return self.root / "kubeconfig"

    @property
    def settings(self) -> Path:
        """The ports and choices of the running cluster; written before its first process starts."""
        return self.root / "cluster.json"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def data(self) -> Path:
        """etcd's data."""
        return self.root / "etcd"

    def config(self, component: str) -> Path:
        """The configuration file of a component that has one."""
        return self.root / f"{component}.yaml"

    def log(self, component: str) -> Path:
        """All that a component printed since it was started last."""
        return self.root / "logs" / f"{component}.log"

    def pid(self, component: str) -> Path:
        """Which process a component is."""
        return self.root / "pids" / component

    def make(self) -> None:
        """Create the folders; only this user may read them, they hold keys."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.pki, self.root / "logs", self.root / "pids"):
            folder.mkdir(exist_ok=True)


def layout(name: str) -> Layout:
    """The state folder of the cluster called name; raises LocalError for what can't be a name."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f'--name "{name}": allowed: up to 32 lower-case letters, digits and inner dashes, e.g. "demo-2"'
        )
    return Layout(clusters_folder() / name)


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file at path; calls waiting once if somebody else has it.

    The kernel drops the lock with the process, so a killed holder leaves nothing to clean up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
