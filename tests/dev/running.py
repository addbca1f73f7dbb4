"""`allaboard dev`, or one of its parts, as a user runs it: a process, what it says, and how it ends."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-allaboard"
ALLABOARD: Final = (sys.executable, "-m", "allaboard")


def once(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run allaboard to its end."""
    return subprocess.run(
        [*ALLABOARD, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


class Running:
    """A running command; said and told hold what stdout and stderr gave so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.told: list[str] = []
        self._news: queue.Queue[None] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._collect, args=pair, daemon=True)
            for pair in ((process.stdout, self.said), (process.stderr, self.told))
        ]
        for reader in self._readers:
            reader.start()

    def until_ready(self) -> None:
        """Return once the first line of stdout is there; it must be "ready"."""
        self._until(lambda: bool(self.said))
        assert self.said == ["ready"]

    def until_told(self, pattern: str) -> str:
        """Return the first line of stderr that matches."""
        found: list[str] = []

        def matches() -> bool:
            found.extend(line for line in self.told if re.search(pattern, line))
            return bool(found)

        self._until(matches)
        return found[0]

    def child(self, part: str) -> int:
        """The process id of a part."""
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(Path(word.decode()).name == part for word in words[:4]):
                return int(pid)
        raise AssertionError(f"{part} is no child of process {self.process.pid}")

    def stop(self, number: signal.Signals) -> int:
        """Send the signal; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=30)
        for reader in self._readers:
            reader.join(timeout=5)
        return code

    def _collect(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))
            self._news.put(None)
        self._news.put(None)

    def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            if self.process.poll() is not None:
                self._readers[1].join(timeout=5)
                raise AssertionError("it ended:\n" + "\n".join(self.told))
            try:
                self._news.get(timeout=45)
            except queue.Empty:
                raise AssertionError("it says nothing new:\n" + "\n".join(self.told)) from None


@contextmanager
def running(command: str, *arguments: str | Path) -> Iterator[Running]:
    """The command with these arguments, stopped at the end whatever happens."""
    process = subprocess.Popen(
        [*ALLABOARD, command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    started = Running(process)
    try:
        yield started
    finally:
        if process.poll() is None:
            started.stop(signal.SIGTERM)
        for stream in (process.stdout, process.stderr):
            stream.close()  # type: ignore[union-attr]


def processes_of(text: Path) -> list[str]:
    """Command lines of all processes on the machine that mention the text."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(text) in line and path.parent.name != str(os.getpid()):
            lines.append(line)
    return lines
