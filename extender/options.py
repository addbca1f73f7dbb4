"""How an extender is to run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from extender.leases import Election
from extender.preemption import Rules

PROTECTIONS: Final = frozenset({"barrier", "guard", "domain", "limits", "order", "preconditions"})


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. kubeconfig None: in the cluster. port 0: any free one. probe_port None: no such port.

    profiles: names of the schedulers that we serve. unprotected: protections switched off, a subset of
    PROTECTIONS; only for proving that whoever judges our promises would notice. rules: who may be evicted.
    scale_up_after: see extender/scaleup.py, None for never.
    """

    kubeconfig: Path | None
    host: str
    port: int
    profiles: tuple[str, ...]
    unprotected: frozenset[str] = frozenset()
    election: Election = field(default_factory=Election)
    scale_up_after: float | None = None
    probe_port: int | None = None
    rules: Rules = field(default_factory=Rules)
