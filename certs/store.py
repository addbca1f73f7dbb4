"""The authority and the serving certificate as files, made when they are missing and replaced in time.

What is there is reused as long as it is sound, so that a restart changes nothing that others trust; what
is corrupted, about to expire or made for other hosts is replaced. Files appear whole or not at all, and
keys are readable by their owner only.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from certs import issue
from certs.issue import Pair

_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644


@dataclass(frozen=True, slots=True)
class Serving:
    """Files of the serving certificate and its key, and the authority's certificate (PEM)."""

    cert_file: Path
    key_file: Path
    ca_bundle: bytes


def ensure(state_dir: Path, hosts: Sequence[str], now: datetime) -> Serving:
    """A serving certificate for these DNS names and IP addresses, valid at now (with a time zone).

    Calling it again, say once a day, renews what nears its end.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    ca_files = state_dir / "ca.crt", state_dir / "ca.key"
    files = state_dir / "tls.crt", state_dir / "tls.key"
    ca = _read(*ca_files)
    if ca is None or not issue.lasts(ca, now, issue.CA_LIFE):
        ca = issue.new_ca(now)
        _write(ca, *ca_files)
    serving = _read(*files)
    if serving is None or not (
        issue.lasts(serving, now, issue.SERVING_LIFE) and issue.serves(serving, ca, hosts)
    ):
        _write(issue.new_serving(ca, hosts, now), *files)
    return Serving(*files, ca.certificate)


def _read(cert_file: Path, key_file: Path) -> Pair | None:
    try:
        return Pair(cert_file.read_bytes(), key_file.read_bytes())
    except OSError:
        return None


def _write(pair: Pair, cert_file: Path, key_file: Path) -> None:
    # The certificate last: whoever watches it finds the new key already there.
    replace_file(key_file, pair.key, _PRIVATE)
    replace_file(cert_file, pair.certificate, _PUBLIC)


def replace_file(path: Path, content: bytes, mode: int = _PRIVATE) -> None:
    """Write the file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
