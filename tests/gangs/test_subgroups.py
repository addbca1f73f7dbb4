"""Subgroups travel in an annotation that anybody may write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.subgroups import Subgroup, decode, encode

_KEYS = st.lists(st.sampled_from(["zone", "nvidia.com/gpu.clique", "kubernetes.io/hostname"]), unique=True)
_SUBGROUPS = st.builds(
    Subgroup,
    name=st.text(),
    min_member=st.integers(0, 1000),
    min_subgroup=st.none() | st.integers(0, 1000),
    required=_KEYS.map(tuple),
    preferred=_KEYS.map(tuple),
)


@given(st.lists(_SUBGROUPS))
def test_a_path_comes_back_as_it_was_written(path: list[Subgroup]) -> None:
    assert decode(encode(path)) == tuple(path)


def test_empty_fields_are_not_written() -> None:
    assert encode([Subgroup("workers", 4)]) == '[{"name": "workers", "minMember": 4}]'


@pytest.mark.parametrize(
    "garbage",
    [
        "workers",
        "{",
        "7",
        "[7]",
        "[{}]",
        '[{"name": 7}]',
        '[{"name": "w", "minMember": "4"}]',
        '[{"name": "w", "minMember": -1}]',
        '[{"name": "w", "minMember": true}]',
        '[{"name": "w", "minSubGroup": null}]',
        '[{"name": "w", "required": ["zone"]}]',
        "[" * 100_000,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_no_path_names_no_subgroup(garbage: str) -> None:
    assert decode(garbage) == ()


@given(st.text())
def test_reading_never_raises(value: str) -> None:
    assert isinstance(decode(value), tuple)
