"""Tables in docs/ say what the code says."""

import pytest

from allaboard.handbook import TABLES, pages, written
from gangs.reasons import MEANINGS, Reason


@pytest.mark.parametrize("name", [path.name for path in pages()])
def test_a_page_has_its_tables_as_the_code_would_write_them(name: str) -> None:
    [path] = [path for path in pages() if path.name == name]
    text = path.read_text()
    assert written(text) == text, "run: .venv/bin/python -m allaboard.handbook"


def test_every_table_is_on_some_page() -> None:
    text = "".join(path.read_text() for path in pages())
    assert [name for name in TABLES if f"<!-- table: {name} -->" not in text] == []


def test_a_table_that_has_drifted_is_noticed() -> None:
    page = "# Events\n<!-- table: events -->\n| reason |\n<!-- end -->\n"
    assert written(page) != page
    assert all(f"| `{reason}` |" in written(page) for reason in Reason)


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
