"""Time that doesn't jump."""

from extender.clock import steady_clock


def test_a_wall_clock_that_is_set_moves_no_deadline() -> None:
    wall, monotonic = 1_000_000.0, 50.0
    clock = steady_clock(lambda: wall, lambda: monotonic)
    assert clock() == 1_000_000.0
    wall, monotonic = 1_003_600.0, 51.0
    assert clock() == 1_000_001.0
    wall, monotonic = 990_000.0, 52.0
    assert clock() == 1_000_002.0
