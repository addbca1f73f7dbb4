"""Kubernetes quantities as integers: millicores for cpu, whole units (bytes, devices) for the rest.

Grammar and rounding up follow apimachinery's resource.Quantity: `500m`, `4`, `1.5Gi`, `2e3`, `100k`.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

CPU: Final = "cpu"

# Fraction also reads 1/2 and 1_000, and takes for ever over 1e999999999.
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")

_SUFFIXES: Final[dict[str, Fraction]] = {
    **{s: Fraction(1024) ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
    **{s: Fraction(1000) ** (i + 1) for i, s in enumerate(("k", "M", "G", "T", "P", "E"))},
    "m": Fraction(1, 1000),
    "u": Fraction(1, 1000**2),
    "n": Fraction(1, 1000**3),
}


class QuantityError(ValueError):
    """The text is no Kubernetes quantity."""


@lru_cache(maxsize=4096)
def amount(resource: str, text: str | int | float) -> int:
    """The quantity in its unit, rounded up: millicores when resource is cpu, else whole units.

    Raises QuantityError.
    """
    value = _parse(str(text))
    return ceil(value * 1000) if resource == CPU else ceil(value)


def _parse(text: str) -> Fraction:
    number, factor = _split(text.strip())
    if not _NUMBER.fullmatch(number):
        raise QuantityError(f"{text!r} is no quantity (like 500m, 4, 1.5Gi)")
    return Fraction(number) * factor


def _split(text: str) -> tuple[str, Fraction]:
    for length in (2, 1):
        factor = _SUFFIXES.get(text[-length:])
        if factor is not None:
            return text[:-length], factor
    return text, Fraction(1)
