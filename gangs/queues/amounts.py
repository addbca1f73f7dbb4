"""What queues count: GPUs, thousandths of a CPU, bytes of memory."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gangs.contract import GPU
from gangs.quantities import CPU

RESOURCES: Final = ("gpu", "cpu", "memory")
UNLIMITED: Final = math.inf
_MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class Amounts:
    """So much of each resource; UNLIMITED where there is no bound."""

    gpu: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.gpu + other.gpu, self.cpu + other.cpu, self.memory + other.memory)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.gpu - other.gpu, self.cpu - other.cpu, self.memory - other.memory)

    @property
    def values(self) -> tuple[float, float, float]:
        """The amounts in the order of RESOURCES."""
        return self.gpu, self.cpu, self.memory

    def __bool__(self) -> bool:
        return any(self.values)


NOTHING: Final = Amounts()


def amounts_of(requests: Mapping[str, int]) -> Amounts:
    """What a Pod's requests, or a node's allocatable, are in a queue's account."""
    return Amounts(requests.get(GPU, 0), requests.get(CPU, 0), requests.get(_MEMORY, 0))


def total(parts: Iterable[Amounts]) -> Amounts:
    """All of them together."""
    return sum(parts, NOTHING)
