"""Kubernetes quantities, read as apimachinery reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.quantities import QuantityError, amount


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "500m", 500),
        ("cpu", "2", 2000),
        ("cpu", "0.1", 100),
        ("cpu", "1500u", 2),
        ("cpu", "1n", 1),
        ("memory", "1Ki", 1024),
        ("memory", "1.5Gi", 3 * 2**29),
        ("memory", "100k", 100_000),
        ("memory", "1E", 10**18),
        ("memory", "1Ei", 2**60),
        ("memory", "2e3", 2000),
        ("memory", "2E3", 2000),
        ("memory", "128974848", 128_974_848),
        ("memory", "1m", 1),
        ("nvidia.com/gpu", "4", 4),
        ("nvidia.com/gpu", 4, 4),
        ("nvidia.com/gpu", "0", 0),
        ("cpu", 0.25, 250),
    ],
)
def test_a_quantity_is_read_in_its_unit_and_rounded_up(
    resource: str, text: str | int | float, expected: int
) -> None:
    assert amount(resource, text) == expected


@pytest.mark.parametrize(
    "text", ["", "four", "1Xi", "Gi", "1 Gi x", "--1", "nan", "inf", "1/2", "1_000", "1e"]
)
def test_what_is_no_quantity_is_named_together_with_examples(text: str) -> None:
    with pytest.raises(QuantityError, match=r"is no quantity \(like 500m, 4, 1.5Gi\)") as refusal:
        amount("memory", text)
    assert text in str(refusal.value)


@given(st.integers(0, 10**9))
def test_millicores_and_whole_cores_agree(cores: int) -> None:
    assert amount("cpu", f"{cores}") == amount("cpu", f"{cores * 1000}m") == cores * 1000


@given(st.integers(0, 10**6), st.sampled_from(["Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T"]))
def test_a_suffix_multiplies(number: int, suffix: str) -> None:
    assert amount("memory", f"{number}{suffix}") == number * amount("memory", f"1{suffix}")
