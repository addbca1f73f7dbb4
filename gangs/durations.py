"""Durations as Go writes them, and as KAI's annotations hold them: 60s, 1h30m, -1s."""

import re
from typing import Final

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST: Final = 64  # characters: anybody may write there


class DurationError(ValueError):
    """The text is no duration."""


def seconds(text: str) -> float:
    """The duration in seconds; negative where a minus stands before it. Raises DurationError."""
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    parts = list(_PART.finditer(rest)) if len(rest) <= _LONGEST else []
    if not parts or "".join(part[0] for part in parts) != rest:
        raise DurationError(f"{text!r} is no duration (like 60s, 5m or 1h30m)")
    return sign * sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
