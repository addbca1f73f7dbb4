"""Chaos: what its judge forgives and what it doesn't, and a short run on a real control plane."""

import subprocess
import sys
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from e2e.chaos.faults import NAMES
from e2e.chaos.judge import FOREIGN, STUCK_SECONDS, UNFINISHABLE_SECONDS, Judge
from e2e.chaos.run import Outcome, Plan, run, timetable
from e2e.checker import Snapshot, Violation
from tests.e2e.test_checker import node, pod

Json = dict[str, Any]

_READY = [{"type": "Ready", "status": "True"}]


def show(
    judge: Judge, until: float, *pods: Json, cordoned: tuple[str, ...] = (), claims: tuple[Json, ...] = ()
) -> list[str]:
    """Look twice a second from 0 on, at two cliques of two nodes; the promises that were broken."""
    nodes = {n: node(n, n[0]) for n in ("a0", "a1", "b0", "b1")}
    for name, row in nodes.items():
        row["status"]["conditions"] = _READY
        row["spec"] = {"unschedulable": name in cordoned}
    for row in pods:
        row["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    by_uid = {p["metadata"]["uid"]: p for p in pods}
    for half in range(int(until * 2) + 1):
        judge.look(Snapshot(half / 2, by_uid, nodes, {}, {c["metadata"]["name"]: c for c in claims}))
    return sorted({violation.promise for violation in judge.violations})


def claimed(row: Json, phase: str) -> Json:
    """A volume claim of the Pod's."""
    row["spec"]["volumes"] = [{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}]
    return {"metadata": {**row["metadata"], "name": "weights"}, "status": {"phase": phase}}


class TestJudge:
    def test_half_a_gang_that_could_be_finished_is_partial(self) -> None:
        assert show(Judge(), 6, pod("p0", "a0"), pod("p1")) == ["partial"]

    def test_time_in_which_something_was_kept_from_working_does_not_count(self) -> None:
        judge = Judge()
        judge.disturbed = lambda: True
        assert show(judge, 20, pod("p0", "a0"), pod("p1")) == []

    def test_half_a_gang_without_room_for_the_rest_has_a_minute_to_be_undone(self) -> None:
        half = pod("p0", "a0"), pod("p1")
        assert show(Judge(), UNFINISHABLE_SECONDS - 1, *half, cordoned=("a1",)) == []
        assert show(Judge(), UNFINISHABLE_SECONDS + 1, *half, cordoned=("a1",)) == ["partial"]

    def test_a_gang_that_was_whole_once_is_not_partial_when_it_loses_a_member(self) -> None:
        judge = Judge()
        assert show(judge, 1, pod("p0", "a0"), pod("p1", "a1")) == []
        assert show(judge, 20, pod("p0", "a0"), pod("p2")) == []

    @pytest.mark.parametrize(("refused", "found"), [(False, ["theft"]), (True, [])])
    def test_room_is_stolen_only_from_a_boarding_that_goes_on(self, refused: bool, found: list[str]) -> None:
        members = pod("p0", nominated="a0"), pod("p1", nominated="a1")
        if refused:
            members[1]["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            ]
        assert show(Judge(), 1, *members, pod("loose", "a0", gang="")) == found

    def test_a_gang_is_stuck_when_it_could_board_for_half_a_minute(self) -> None:
        waiting = pod("p0"), pod("p1")
        assert show(Judge(), STUCK_SECONDS - 1, *waiting) == []
        assert show(Judge(), STUCK_SECONDS + 1, *waiting) == ["stuck"]

    def test_a_gang_for_which_no_clique_has_room_is_not_stuck(self) -> None:
        assert show(Judge(), STUCK_SECONDS + 10, pod("p0"), pod("p1"), cordoned=("a0", "b0")) == []

    @pytest.mark.parametrize(("phase", "found"), [("Pending", []), ("Bound", ["stuck"])])
    def test_a_gang_whose_volume_is_not_bound_can_not_board(self, phase: str, found: list[str]) -> None:
        waiting = pod("p0"), pod("p1")
        claim = claimed(waiting[0], phase)
        assert show(Judge(), STUCK_SECONDS + 1, *waiting, claims=(claim,)) == found

    def test_a_volume_that_is_not_bound_excuses_nobody_who_bound_the_others_already(self) -> None:
        half = pod("p0", "a0"), pod("p1")
        assert show(Judge(), 6, *half, claims=(claimed(half[1], "Pending"),)) == ["partial"]

    def test_a_gang_behind_an_older_one_that_waits_is_not_stuck(self) -> None:
        old = [pod(f"o{i}", gang="old", floor=3) for i in range(3)]
        young = [pod(f"y{i}", gang="young", creationTimestamp="2026-01-02T00:00:00Z") for i in range(2)]
        assert show(Judge(), STUCK_SECONDS + 10, *old, *young) == []

    def test_a_node_with_too_many_pods_is_overcommitted_unless_another_scheduler_put_one_there(self) -> None:
        ours, theirs = pod("p0", "a0", floor=1), pod("x", "a0", gang="")
        assert show(Judge(), 1, ours, theirs) == ["overcommit"]
        theirs["metadata"]["labels"][FOREIGN] = "yes"
        assert show(Judge(), 1, ours, theirs) == []

    def test_a_node_stays_forgiven_only_while_the_foreign_pod_is_there(self) -> None:
        judge, foreign = Judge(), pod("x", "a0", gang="")
        foreign["metadata"]["labels"][FOREIGN] = "yes"
        assert show(judge, 1, pod("p0", "a0", floor=1), foreign) == []
        assert show(judge, 2, pod("p0", "a0", floor=1), pod("p1", "a0", floor=1)) == ["overcommit"]


class TestTimetable:
    def test_the_same_seed_does_the_same_harm_at_the_same_time(self) -> None:
        first, again, other = (list(islice(timetable(seed, NAMES), 100)) for seed in (1, 1, 2))
        assert first == again != other

    def test_every_kind_comes_before_any_comes_again(self) -> None:
        kinds = [kind for _, kind in islice(timetable(1, NAMES), 2 * len(NAMES))]
        assert sorted(kinds[: len(NAMES)]) == sorted(kinds[len(NAMES) :]) == sorted(NAMES)


class TestVerdict:
    def test_the_closing_line_counts_faults_by_kind_and_violations(self) -> None:
        outcome = Outcome(Counter({"kill extender": 2, "cordon node": 1}), gangs=7, seconds=9.0)
        assert outcome.line() == (
            "3 faults (cordon node 1, kill extender 2) over 7 gangs in 9 s: 0 violations, 0 gangs left behind"
        )

    @pytest.mark.parametrize(
        ("outcome", "kept"),
        [
            (Outcome(), True),
            (Outcome(violations=[Violation("partial", "ns/llm", "1 of 2")]), False),
            (Outcome(left=["llm"]), False),
        ],
    )
    def test_a_violation_or_a_gang_left_behind_breaks_the_promise(self, outcome: Outcome, kept: bool) -> None:
        assert outcome.kept is kept

    def test_a_kind_of_fault_that_does_not_exist_is_named_with_those_that_do(self) -> None:
        command = [sys.executable, "-m", "e2e.chaos", "--only", "earthquake"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "earthquake" in done.stderr
        assert "cordon node" in done.stderr

    def test_there_are_more_than_a_dozen_kinds(self) -> None:
        assert len(NAMES) == len(set(NAMES)) >= 12


@pytest.mark.cluster
@pytest.mark.timeout(240)
async def test_a_short_run_breaks_no_promise() -> None:
    told: list[str] = []
    outcome = await run(Plan(faults=8, seed=7, gangs_at_once=5, only=_SHORT), told.append)
    assert (outcome.violations, outcome.left) == ([], []), "\n".join(told)
    assert outcome.faults.total() == 8
    assert outcome.gangs >= 5


@pytest.mark.cluster
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("off", "harm", "faults", "promise"),
    [("barrier", "late volume", 1, "partial"), ("guard", "overtake promise", 3, "theft")],
)
async def test_with_a_protection_switched_off_a_promise_is_broken(
    off: str, harm: str, faults: int, promise: str
) -> None:
    plan = Plan(faults=faults, seed=7, gangs_at_once=4, only=(harm,), unprotected=(off,))
    outcome = await run(plan, lambda _: None)
    assert promise in {violation.promise for violation in outcome.violations}
    assert not outcome.kept


_SHORT = (
    "kill extender",
    "kill kube-scheduler",
    "cordon node",
    "delete pod",
    "drop watches",
    "foreign bind",
    "late volume",
    "overtake promise",
)
