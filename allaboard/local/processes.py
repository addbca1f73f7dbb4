"""Daemons that outlive the command which started them, and the proof that a pid is still ours.

A pid file holds pid, start time and boot: pids are handed out again, but not with the same start
time within one boot. Everything here works the same whoever the daemon's parent is by now.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_GONE_WITHIN: Final = 10.0  # seconds for SIGKILL to take effect
_REAPED_WITHIN: Final = 2.0  # seconds for a foreign parent (init) to collect the dead
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of one boot.

    started: clock ticks since boot, as /proc has it.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process that has this pid now, or None (a zombie is none)."""
        started = _start_time(pid)
        return cls(pid, started, _boot()) if started is not None else None

    @classmethod
    def read(cls, file: Path) -> Self | None:
        """The process named by a pid file if it still runs, else None; never somebody else's."""
        try:
            pid, started, boot = file.read_text().split()
            written = cls(int(pid), int(started), boot)
        except (OSError, ValueError):
            return None
        return written if written.alive() else None

    def write(self, file: Path) -> None:
        """Leave a pid file for read."""
        file.write_text(f"{self.pid} {self.started} {self.boot}\n")

    def alive(self) -> bool:
        """Whether this very process, and no later one with its pid, runs."""
        return Process.of(self.pid) == self


def spawn(argv: list[str], log: Path, pid_file: Path) -> Process:
    """Start a daemon in a session of its own (no Ctrl-C of ours reaches it); output goes to log.

    posix_spawn and not subprocess: nobody here waits for the daemon, and Popen insists that one does.
    A signal to us waits until the pid file is written, so no daemon is ever forgotten.
    """
    output = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=(*_STOPPING, signal.SIGPIPE),  # Python ignores SIGPIPE, and ignoring is inherited
        )
        process = Process(pid, _start_time(pid) or 0, _boot())
        process.write(pid_file)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def kill(processes: Iterable[Process]) -> None:
    """Kill them and return when all are gone.

    Without a grace period: a local cluster that is stopped is thrown away, so there is nothing to save.
    """
    rest = [process for process in processes if process.alive()]
    for process in rest:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    _wait_while(Process.alive, rest, _GONE_WITHIN)
    _wait_while(_lingers, rest, _REAPED_WITHIN)


def _wait_while(holds: Callable[[Process], bool], processes: list[Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(map(holds, processes)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _lingers(process: Process) -> bool:
    _reap(process.pid)
    return Path(f"/proc/{process.pid}").exists()


def _start_time(pid: int) -> int | None:
    _reap(pid)
    try:
        # The command's name stands in parentheses and may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], int(fields[19])
    return None if state in "ZX" else started


def _reap(pid: int) -> None:
    # Fails where it is no child of ours (started by an earlier command) or was reaped before.
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _boot() -> str:
    return _BOOT_ID.read_text().strip()
