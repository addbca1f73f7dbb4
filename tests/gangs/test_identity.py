"""The gang label: readable first, unique last, always a valid label value."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.identity import gang_label

VALID_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def test_the_label_begins_with_the_name_that_people_know() -> None:
    assert re.fullmatch(r"llm-[0-9a-f]{10}", gang_label("kai", "StatefulSet", "llm", "1"))


@pytest.mark.parametrize(
    "other",
    [
        ("native", "StatefulSet", "llm", "1"),
        ("kai", "Job", "llm", "1"),
        ("kai", "StatefulSet", "llm", "2"),
        ("kai", "StatefulSet", "llm-a", "1"),
        ("kai", "StatefulSet", "llm", ""),
    ],
)
def test_whatever_tells_namesakes_apart_changes_the_label(other: tuple[str, str, str, str]) -> None:
    assert gang_label(*other) != gang_label("kai", "StatefulSet", "llm", "1")


def test_fields_do_not_run_into_one_another() -> None:
    assert gang_label("a", "bc", "d") != gang_label("ab", "c", "d")


@given(st.text(), st.text(), st.text(), st.text())
def test_any_name_gives_a_valid_label_value_and_always_the_same(
    dialect: str, kind: str, name: str, uid: str
) -> None:
    label = gang_label(dialect, kind, name, uid)
    assert VALID_LABEL.fullmatch(label)
    assert label == gang_label(dialect, kind, name, uid)


def test_long_names_stay_apart() -> None:
    assert gang_label("kai", "Job", "x" * 250 + "a") != gang_label("kai", "Job", "x" * 250 + "b")
