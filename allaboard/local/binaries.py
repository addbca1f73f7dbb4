"""Where the binaries are: a folder that the user names, else the cache, which is filled by building.

ALLABOARD_BIN_DIR ──► KUBEBUILDER_ASSETS ──► cache ──► build (only `provide`)
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from allaboard.local.build import build, cached
from allaboard.local.errors import LocalError
from allaboard.local.tools import EXTRA_TOOLS, TOOLS

_ALL: Final = {**TOOLS, **EXTRA_TOOLS}
_FOLDERS: Final = ("ALLABOARD_BIN_DIR", "KUBEBUILDER_ASSETS")


def find(tool: str) -> Path:
    """The binary called tool; raises LocalError if it was never built."""
    path = _look_up(tool)
    if path is None:
        command = "allaboard local build" + (f" {tool}" if tool in EXTRA_TOOLS else "")
        raise LocalError(f"{tool} {_ALL[tool].version} is not built yet: run `{command}`")
    return path


def provide(names: Iterable[str], say: Callable[[str], None]) -> dict[str, Path]:
    """The binaries called names, building what is nowhere to be found (which takes minutes, and says so)."""
    names = tuple(names)
    missing = [_ALL[name] for name in names if _look_up(name) is None]
    if missing:
        build(missing, say)
    return {name: find(name) for name in names}


def _look_up(name: str) -> Path | None:
    if name not in _ALL:
        raise LocalError(f'"{name}" is no tool of the local cluster (there are: {", ".join(_ALL)})')
    candidates = [folder / name for folder in _given_folders()]
    candidates.append(cached(_ALL[name]))
    return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)


def _given_folders() -> list[Path]:
    folders = []
    for variable in _FOLDERS:
        value = os.environ.get(variable)
        if not value:
            continue
        if not Path(value).is_dir():
            raise LocalError(f'{variable}: "{value}" is no folder (unset it to use the cache)')
        folders.append(Path(value).resolve())
    return folders
