"""Go's durations."""

import pytest

from gangs.durations import DurationError, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", 60),
        ("1h30m", 5400),
        ("1.5m", 90),
        ("250ms", 0.25),
        ("-1s", -1),
        ("0", 0),
        ("0s", 0),
        ("+2m", 120),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "60", "5 m", "1d", "m", "-", "s5", "1h 30m", "٣s", "1" * 70 + "s"])
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is no duration"):
        seconds(text)
