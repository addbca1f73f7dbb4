"""The planner's bench measures what it says: every case, sharp, in the form that others read."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import orjson

from bench.planner import FULL_PERCENT, GANGS

PLAN_KEYS = {"p50", "p99", "max"}


def test_each_case_is_reported_and_gangs_that_just_do_not_fit_are_not_placed(tmp_path: Path) -> None:
    told = tmp_path / "planner.json"
    command = [
        sys.executable,
        "-m",
        "bench.planner",
        "--nodes",
        "180",
        "--members",
        "12",
        "--json",
        str(told),
    ]
    subprocess.run(command, check=True, capture_output=True)
    report = orjson.loads(told.read_bytes())
    assert set(report["plan_ms"]) == PLAN_KEYS
    assert report["event_us"] > 0
    assert report["rss_mib"] > 0
    cases = {(c["nodes"], c["full_percent"], c["gang"]): c["placed"] for c in report["cases"]}
    assert set(cases) == set(product((144, 180), FULL_PERCENT, GANGS))
    assert all(placed == (gang != "just too big") for (_, _, gang), placed in cases.items())


def test_a_gang_larger_than_a_clique_is_refused_with_what_is_allowed() -> None:
    command = [sys.executable, "-m", "bench.planner", "--members", "73"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "--members: 73 is not between 3 and 72" in run.stderr
