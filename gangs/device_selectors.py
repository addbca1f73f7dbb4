"""Which devices a CEL expression of the DRA API matches, as kube-scheduler would say.

An expression sees one variable, `device`: its driver, and its attributes and capacity by domain
(resource.k8s.io/v1 CELDeviceSelector). Most of a node's devices differ in nothing that the expression
names, so what it said of one is remembered for all that look alike to it.

Quantities and versions become values that compare as the Kubernetes CEL libraries compare them: numbers,
and lists of version parts.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import cel
import orjson

from gangs.quantities import amount

Facts = Mapping[str, Any]
"""What an expression sees of a device: driver, attributes and capacity (by domain, then by name)."""

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"[0-9]+")


class UnsupportedExpressionError(Exception):
    """The expression can't be evaluated here: a syntax or function that our CEL library lacks."""


class Selector:
    """One expression. Make it by selector(), so that what it has found is kept."""

    def __init__(self, expression: str) -> None:
        self._words = frozenset(_WORD.findall(expression))
        self._known: dict[bytes, bool] = {}
        try:
            self._program = cel.compile(expression)
        except ValueError as error:
            raise UnsupportedExpressionError(str(error)) from error

    def matches(self, device: Facts) -> bool:
        """Whether the device meets the expression; one that lacks what it names does not.

        Raises UnsupportedExpressionError.
        """
        seen = self._seen(device)
        key = orjson.dumps(seen, option=orjson.OPT_SORT_KEYS)
        if key not in self._known:
            self._known[key] = self._evaluate(seen)
        return self._known[key]

    def _seen(self, device: Facts) -> dict[str, Any]:
        """The device without those attributes that the expression doesn't name."""
        rows = {
            kind: {
                domain: {name: value for name, value in row.items() if name in self._words}
                for domain, row in device[kind].items()
            }
            for kind in ("attributes", "capacity")
        }
        return {**device, **rows}

    def _evaluate(self, device: Mapping[str, Any]) -> bool:
        context = cel.Context(variables={"device": dict(device)}, functions=_FUNCTIONS)
        try:
            return self._program.execute(context) is True
        except (KeyError, TypeError, AttributeError):
            return False  # kube-scheduler ends with an error there, and the Pod stays where it is
        except (ValueError, RuntimeError) as error:
            raise UnsupportedExpressionError(str(error)) from error


@lru_cache(maxsize=1024)
def selector(expression: str) -> Selector:
    """The selector of this expression. Raises UnsupportedExpressionError."""
    return Selector(expression)


def version(text: str) -> list[int | str]:
    """A semantic version as a list that compares like it: a pre-release comes before its release."""
    core, _, rest = text.partition("+")[0].partition("-")
    numbers: list[int | str] = [int(part) for part in core.split(".") if _NUMBER.fullmatch(part)]
    return [*numbers, 0, rest] if rest else [*numbers, 1]


def quantity(text: str) -> int:
    """A resource quantity, in thousandths, so that fractions compare, too."""
    return amount("cpu", text)


def _sign(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "semver": version,
    "quantity": quantity,
    "compareTo": _sign,
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
}
