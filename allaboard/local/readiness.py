"""Waiting until started components answer, and saying why one doesn't: the end of its log."""

import ssl
import time
import urllib.request
from collections.abc import Iterable
from typing import Final

from allaboard.local.components import Settings, health
from allaboard.local.errors import LocalError
from allaboard.local.layout import Layout
from allaboard.local.processes import Process

_WITHIN: Final = 60.0  # seconds; 2 to 5 are usual, a loaded CI machine may need more
_POLL: Final = 0.05  # seconds
_TAIL: Final = 15  # log lines that a failure shows


def wait_ready(components: Iterable[str], settings: Settings, place: Layout) -> None:
    """Return once all components are healthy; raises LocalError for the first that died or is too late."""
    context = ssl.create_default_context(cafile=place.pki / "ca.crt")
    deadline = time.monotonic() + _WITHIN
    for component in components:
        while not _healthy(health(component, settings), context):
            if Process.read(place.pid(component)) is None:
                raise LocalError(f"{component} ended at once{_log_end(component, place)}")
            if time.monotonic() > deadline:
                raise LocalError(
                    f"{component} is not ready after {_WITHIN:.0f} s{_log_end(component, place)}"
                )
            time.sleep(_POLL)


def _healthy(url: str, context: ssl.SSLContext) -> bool:
    # No proxy: a user's HTTP(S)_PROXY is not for 127.0.0.1.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, reset, timed out, or an HTTP error such as 500 "not ready"
        return False


def _log_end(component: str, place: Layout) -> str:
    lines = place.log(component).read_text(errors="replace").splitlines()
    end = "\n".join(f"  {line}" for line in lines[-_TAIL:]) or "  (it printed nothing)"
    return f". The end of its log:\n{end}"
