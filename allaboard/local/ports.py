"""Free ports on 127.0.0.1.

From below the range that Linux gives to outgoing connections, so that no connection of anybody takes
a port between our look and the daemon's start.
"""

import random
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from allaboard.local.errors import LocalError

_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_WIDTH: Final = 12_000  # candidates below the ephemeral range
_LOWEST: Final = 1024  # ports below need privileges


def free_ports(users: Iterable[str]) -> dict[str, int]:
    """A port for each user, drawn at random so that clusters starting side by side don't meet."""
    first_ephemeral = int(_EPHEMERAL.read_text().split()[0])
    candidates = list(range(max(_LOWEST, first_ephemeral - _WIDTH), first_ephemeral))
    if len(candidates) < _WIDTH:
        candidates = list(range(_LOWEST, 65536))  # the range was widened to nearly everything
    random.shuffle(candidates)
    free = (port for port in candidates if _is_free(port))
    try:
        return {user: next(free) for user in users}
    except StopIteration:
        raise LocalError("no free TCP ports on 127.0.0.1") from None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the daemons do: a port whose last connection is still in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
