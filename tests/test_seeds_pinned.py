"""The examples and captured objects are other people's, unmodified: that is what promise P6 is measured by.

seeds.sha256 is in the format of `sha256sum -c`. A new file in these folders has to be listed there.
"""

from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES = (Path(__file__).parent / "seeds.sha256").read_text().splitlines()
SUMS = {name: digest for digest, name in (line.split("  ", 1) for line in LINES)}


def test_no_file_is_missing_and_none_is_there_that_is_not_listed() -> None:
    folders = (ROOT / "examples", ROOT / "tests" / "fixtures")
    there = {
        str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("*") if path.is_file()
    }
    assert there == set(SUMS)


@pytest.mark.parametrize("name", sorted(SUMS))
def test_each_file_is_byte_for_byte_what_was_captured(name: str) -> None:
    assert sha256((ROOT / name).read_bytes()).hexdigest() == SUMS[name]
