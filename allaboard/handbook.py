"""The tables in docs/ that are written from code, so that they can't drift: `python -m allaboard.handbook`.

A page has a line `<!-- table: NAME -->`, its table, and a line `<!-- end -->`; a test fails where the table
is not what the code would write.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from gangs import figures
from gangs.figures import Figure
from gangs.reasons import MEANINGS, Reason

DOCS: Final = Path(__file__).parents[1] / "docs"

_TABLE: Final = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def events() -> str:
    """Every event reason."""
    rows = [
        (f"`{reason}`", "Warning" if reason.is_warning else "Normal", MEANINGS[reason]) for reason in Reason
    ]
    return _table(("reason", "type", "meaning"), rows)


def extender_metrics() -> str:
    """What the extender serves."""
    return _metrics(figures.EXTENDER)


def webhook_metrics() -> str:
    """What the webhook serves."""
    return _metrics(figures.WEBHOOK)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "events": events,
    "extender_metrics": extender_metrics,
    "webhook_metrics": webhook_metrics,
}


def written(page: str) -> str:
    """The page with its tables as they should be."""
    return _TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def pages() -> list[Path]:
    """The pages that have such a table."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _TABLE.search(path.read_text())]


def _metrics(catalogue: Iterable[Figure]) -> str:
    rows = [(f"`{row.name}`", row.kind.value, _label(row), row.text) for row in catalogue]
    return _table(("metric", "kind", "label", "meaning"), rows)


def _label(figure: Figure) -> str:
    values = ", ".join(figure.values)
    return (f"`{figure.label}`" + (f": {values}" if values else "")) if figure.label else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    for path in pages():
        path.write_text(written(path.read_text()))
        sys.stdout.write(f"{path}\n")
