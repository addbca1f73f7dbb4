"""Builds the missing binaries into the cache, one by one, so that a stopped build goes on where it stopped.

    plan (what, how long) ──► per tool: go build into a temporary file ──► rename into place

Progress is whole lines, at least one every 20 s, which read the same in a terminal and in a CI log.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from allaboard.local import golang
from allaboard.local.errors import LocalError
from allaboard.local.layout import cache_folder, locked
from allaboard.local.tools import Tool

Say = Callable[[str], None]

_HEARTBEAT: Final = 20.0  # seconds between progress lines of one build
_POLL: Final = 0.2  # seconds
_TAIL: Final = 30  # lines of go's output that a failure shows


def cached(tool: Tool) -> Path:
    """Where the tool lies once it is built; it appears there whole or not at all."""
    return cache_folder() / "bin" / tool.key / tool.name


def build(tools: Sequence[Tool], say: Say) -> None:
    """Build those of the tools that aren't cached; raises LocalError naming the tool that failed."""
    lock = cache_folder() / "bin" / ".lock"
    with locked(lock, lambda: say("another build is running: waiting for it (it shares its results)")):
        rest = [tool for tool in tools if not cached(tool).exists()]
        if not rest:
            return
        say(_announcement(rest))
        go = golang.go(say)
        for number, tool in enumerate(rest, start=1):
            _build_one(go, tool, f"[{number}/{len(rest)}] {tool.name} {tool.version}", say)
            say(_left(rest[number:]))


def _announcement(tools: Sequence[Tool]) -> str:
    names = ", ".join(f"{tool.name} {tool.version}" for tool in tools)
    return (
        f"building once, {_about(tools)} on 2 cores: {names}\n"
        f"kept in {cache_folder() / 'bin'}; a stopped build goes on where it stopped"
    )


def _left(tools: Sequence[Tool]) -> str:
    if not tools:
        return "all binaries are built"
    return f"left: {', '.join(tool.name for tool in tools)} ({_about(tools)})"


def _about(tools: Sequence[Tool]) -> str:
    minutes = sum(tool.minutes for tool in tools)
    return f"about {minutes:.0f} min" if minutes >= 1 else "less than 1 min"


def _build_one(go: Path, tool: Tool, title: str, say: Say) -> None:
    target = cached(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"{title}: building")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        log = Path(folder) / "log"
        code = _run(_command(go, tool, Path(folder)), tool, log, lambda: say(_beat(title, started, log)))
        built = Path(folder) / tool.name
        if code or not built.exists():
            raise LocalError(_failure(tool, code, log))
        built.rename(target)
    say(f"{title}: done in {_elapsed(started)}")


def _command(go: Path, tool: Tool, folder: Path) -> list[str]:
    flags = ["-trimpath", "-ldflags", tool.ldflags]
    if tool.module is None:
        return [str(go), "install", *flags, f"{tool.package}@{tool.version}"]
    return [str(go), "build", *flags, "-o", str(folder / tool.name), tool.package]


def _run(command: list[str], tool: Tool, log: Path, beat: Callable[[], None]) -> int:
    environment = {**golang.environment(), "GOBIN": str(log.parent)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=tool.module or log.parent, env=environment, stdout=output, stderr=output
        )
        try:
            return _wait(process, beat)
        except BaseException:  # Ctrl-C above all: no compiler may go on in the background
            process.terminate()
            process.wait()
            raise


def _wait(process: subprocess.Popen[bytes], beat: Callable[[], None]) -> int:
    next_beat = time.monotonic() + _HEARTBEAT
    while (code := process.poll()) is None:
        time.sleep(_POLL)
        if time.monotonic() >= next_beat:
            beat()
            next_beat += _HEARTBEAT
    return code


def _beat(title: str, started: float, log: Path) -> str:
    downloads = log.read_text(errors="replace").count("go: downloading ")
    fetched = f", {downloads} modules downloaded" if downloads else ""
    return f"{title}: {_elapsed(started)}{fetched}"


def _elapsed(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"


def _failure(tool: Tool, code: int, log: Path) -> str:
    lines = [
        line
        for line in log.read_text(errors="replace").splitlines()
        if not line.startswith("go: downloading ")
    ]
    end = os.linesep.join(lines[-_TAIL:]) or "(go printed nothing)"
    return (
        f"building {tool.name} {tool.version} failed (go exit code {code}); what was built before is kept, "
        f"run the command again to go on. The end of go's output:\n{end}"
    )
