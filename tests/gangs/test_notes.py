"""Notes travel in an annotation that anybody may write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.notes import Note, decode, encode

_NOTES = st.builds(
    Note, message=st.text(min_size=1), blocking=st.booleans(), topology=st.text(), level=st.text()
)


@given(st.lists(_NOTES, min_size=1))
def test_notes_come_back_as_they_were_written(notes: list[Note]) -> None:
    assert decode(encode(notes)) == tuple(notes)


def test_empty_fields_are_not_written() -> None:
    assert encode([Note("hello")]) == '[{"message": "hello"}]'


def test_no_annotation_means_no_notes() -> None:
    assert decode("") == ()
    assert decode(encode([])) == ()


@pytest.mark.parametrize(
    "garbage",
    ["please", "{", "7", "null", "{}x", '[{"text": "x"}]', "[7]", '["x"]', "[" * 100_000, "9" * 5_000],
    ids=lambda text: text[:12],
)
def test_what_is_no_list_of_notes_counts_as_one_plain_note(garbage: str) -> None:
    assert decode(garbage) == (Note(garbage),)


@given(st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(json.dumps)))
def test_reading_never_raises(value: str) -> None:
    assert all(isinstance(note.message, str) for note in decode(value))


@pytest.mark.parametrize("value", ["1", '"true"', "null", "false"])
def test_only_a_plain_true_blocks(value: str) -> None:
    assert decode('[{"message": "m", "blocking": ' + value + "}]") == (Note("m"),)
