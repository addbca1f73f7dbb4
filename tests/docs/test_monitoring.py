"""Alert rules and dashboard ask only for series that exist, with labels and values that they can have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml
from promql_parser import MatchOp, VectorSelector

from gangs.figures import EXTENDER, WEBHOOK, Kind

MONITORING: Final = Path(__file__).parents[2] / "manifests" / "monitoring"
SERIES: Final = {series: figure for figure in (*EXTENDER, *WEBHOOK) for series in figure.series}
FROM_PROMETHEUS: Final = {"instance", "job"}  # labels that every series gets when it is scraped


def alerts() -> list[dict[str, Any]]:
    found = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def queries() -> Iterator[str]:
    yield from (rule["expr"] for rule in alerts())
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def faults(query: str) -> list[str]:
    """What is wrong with a query."""
    found: list[str] = []

    def look(expression: Any) -> bool:
        if isinstance(expression, VectorSelector):
            found.extend(_faults(expression))
        return True

    promql_parser.walk(promql_parser.parse(query), look)
    return found + _grouping(query)


def _faults(selector: VectorSelector) -> Iterator[str]:
    figure = SERIES.get(selector.name or "")
    if figure is None:
        yield f"no series {selector.name}"
        return
    for matcher in selector.matchers.matchers:
        if matcher.name in FROM_PROMETHEUS:
            continue
        if matcher.name != figure.label:
            yield f"{selector.name} has no label {matcher.name}"
        elif matcher.op == MatchOp.Re:
            unknown = set(matcher.value.split("|")) - set(figure.values)
            yield from (f"{figure.label} is never {value}" for value in sorted(unknown))
        elif matcher.op == MatchOp.Equal and matcher.value not in figure.values:
            yield f"{figure.label} is never {matcher.value}"


def _grouping(query: str) -> list[str]:
    """Labels by which is grouped, and which no series of the query has."""
    asked = {SERIES[name].label for name in re.findall(r"allaboard_\w+", query) if name in SERIES}
    by = {label.strip() for labels in re.findall(r"\bby \(([^)]*)\)", query) for label in labels.split(",")}
    return [f"nothing has a label {label}" for label in sorted(by - asked - FROM_PROMETHEUS - {"le"})]


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_query_asks_for_what_exists(query: str) -> None:
    assert faults(query) == []


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("sum(allaboard_boardings)", "no series allaboard_boardings"),
        ("rate(allaboard_verb_seconds[5m])", "no series allaboard_verb_seconds"),
        ('allaboard_gangs{phase="Stuck"}', "phase is never Stuck"),
        ('allaboard_verb_seconds_sum{verb=~"filter|guess"}', "verb is never guess"),
        ('allaboard_leader{phase="Waiting"}', "allaboard_leader has no label phase"),
        ("sum by (gang) (allaboard_gangs)", "nothing has a label gang"),
    ],
)
def test_a_query_for_what_does_not_exist_is_found_out(query: str, fault: str) -> None:
    assert faults(query) == [fault]


@pytest.mark.parametrize("query", ["sum(allaboard_gangs", "rate(allaboard_gangs)", "allaboard_gangs{phase=}"])
def test_a_query_that_prometheus_would_refuse_is_found_out(query: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        promql_parser.parse(query)


def test_counters_are_read_as_rates_and_gauges_are_not() -> None:
    for query in queries():
        for name in re.findall(r"(\w*)\((allaboard_\w+)", query):
            function, series = name
            counted = SERIES[series].kind is not Kind.GAUGE
            assert (function in ("rate", "increase")) == counted, query


def test_every_alert_has_a_name_of_its_own_a_severity_and_a_summary() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names))
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}


def test_every_metric_is_on_the_dashboard_or_alerted_on() -> None:
    text = " ".join(queries())
    assert [figure.name for figure in (*EXTENDER, *WEBHOOK) if figure.name not in text] == []


def test_panels_have_titles_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        assert panel["title"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
