"""Parts are kept running, and none outlives who keeps it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from allaboard.dev.supervisor import Part, keep
from tests.dev.running import processes_of
from tests.waiting import eventually

# Writes its process id, then lives until it is stopped.
LIVES = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(60)"


def part(folder: Path, script: str) -> Part:
    return Part("sleeper", [sys.executable, "-c", script, str(folder)], folder / "log")


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


async def started(log: Path, times: int) -> int:
    """The process id of the last of so many starts."""

    async def enough() -> bool:
        return len(lines(log)) >= times

    await eventually(enough)
    return int(lines(log)[-1])


async def test_a_part_that_was_killed_is_started_again_and_its_end_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    kept = asyncio.create_task(keep(part(tmp_path, LIVES), told.append))
    first = await started(tmp_path / "log", 1)
    os.kill(first, signal.SIGKILL)
    assert await started(tmp_path / "log", 2) != first
    assert told == [f"sleeper ended (SIGKILL); it is started again in 0.5 s. Its log: {tmp_path / 'log'}"]
    kept.cancel()
    await asyncio.wait([kept])
    assert processes_of(tmp_path) == []


async def test_a_part_that_fails_at_once_is_tried_again_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allaboard.dev.supervisor._RESTART_SECONDS", (0.01, 0.02, 0.05))
    told: list[str] = []
    kept = asyncio.create_task(keep(part(tmp_path, "raise SystemExit(3)"), told.append))

    async def four_times() -> bool:
        return len(told) >= 4

    await eventually(four_times)
    kept.cancel()
    await asyncio.wait([kept])
    assert [line.split(" it is started again in ")[1].split(" s.")[0] for line in told[:4]] == [
        "0.01",
        "0.02",
        "0.05",
        "0.05",
    ]
    assert all(line.startswith("sleeper ended (exit code 3);") for line in told)


async def test_a_part_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allaboard.dev.supervisor._STOP_SECONDS", 0.2)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + LIVES
    kept = asyncio.create_task(keep(part(tmp_path, deaf), lambda _: None))
    await started(tmp_path / "log", 1)
    kept.cancel()
    await asyncio.wait([kept])
    assert processes_of(tmp_path) == []


async def test_a_part_dies_with_the_process_that_keeps_it(tmp_path: Path) -> None:
    keeper = (
        "import asyncio, sys; from pathlib import Path; from allaboard.dev.supervisor import Part, keep; "
        f"folder = Path({str(tmp_path)!r}); "
        f"part = Part('sleeper', [sys.executable, '-c', {LIVES!r}, str(folder)], folder / 'log'); "
        "asyncio.run(keep(part, print))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", keeper)
    await started(tmp_path / "log", 1)
    process.send_signal(signal.SIGKILL)
    await process.wait()

    async def none_left() -> bool:
        return processes_of(tmp_path) == []

    await eventually(none_left)
