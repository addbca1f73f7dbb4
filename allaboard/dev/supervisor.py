"""Keeps processes running: starts them, starts them again when they die, stops them all at the end.

They die with us, too: if this process is killed, Linux sends them SIGTERM.
"""

import asyncio
import ctypes
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0)
_STEADY_SECONDS: Final = 10.0  # who ran that long is started again at once
_STOP_SECONDS: Final = 5.0
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A process to keep running. Its output is appended to log."""

    name: str
    command: Sequence[str]
    log: Path


async def keep(part: Part, say: Callable[[str], None]) -> None:
    """Run the part until cancelled, then stop it."""
    failures = 0
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        code = await _run(part)
        failures = 0 if loop.time() - started >= _STEADY_SECONDS else failures
        pause = _RESTART_SECONDS[min(failures, len(_RESTART_SECONDS) - 1)]
        failures += 1
        say(f"{part.name} ended ({_cause(code)}); it is started again in {pause:g} s. Its log: {part.log}")
        await asyncio.sleep(pause)


async def _run(part: Part) -> int:
    with part.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *part.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours to handle
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
    try:
        return await process.wait()
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _cause(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
