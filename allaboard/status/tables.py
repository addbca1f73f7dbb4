"""The extender's JSON as tables. Pure: rows in, rich renderables out."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]

_STYLES: Final = {
    "Aboard": "green",
    "Boarding": "cyan",
    "Granted": "cyan",
    "Waiting": "yellow",
    "Gathering": "dim",
}
_BAR: Final = 36  # characters; a GB200 NVL72 has 72 GPUs, so that one is half a tray
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def gangs(rows: Sequence[Row], now: float, *, wide: bool, namespaced: bool) -> RenderableType:
    """One line a gang. wide: with its sentence. namespaced: all are of one namespace, so it isn't shown."""
    if not rows:
        return Text("no gangs")
    columns = ("GANG", "PHASE", "MEMBERS", "BOUND", "DOMAIN", "AGE", "REASON")
    table = _table(*(columns if namespaced else ("NAMESPACE", *columns)))
    if wide:
        table.add_column("MESSAGE", overflow="fold")
    for row in rows:
        cells = _cells(row, now)
        cells = cells if namespaced else [row["namespace"], *cells]
        table.add_row(*cells, *([row["message"]] if wide else []))
    return table


def _cells(row: Row, now: float) -> list[str | Text]:
    most = f" of {row['size']}" if row["size"] > row["floor"] else ""
    return [
        row["name"].split("/", 1)[1],
        _phase(row),
        f"{row['here']}/{row['floor']}{most}",
        str(row["bound"]),
        row["domain"] or "-",
        age(now - row["created"]),
        row["reason"] or "-",
    ]


def _phase(row: Row) -> Text:
    return Text(row["phase"], _STYLES.get(row["phase"], ""))


def explained(told: Row) -> RenderableType:
    """One gang: its sentence, and a line for each domain that can't take it."""
    head = Text.assemble("Gang ", (told["name"], "bold"), " is ", _phase(told))
    if told["domain"]:
        head.append(f" in {told['domain']}")
    parts: list[RenderableType] = [head]
    if told["message"]:
        parts.append(Text(told["message"]))
    if told["domains"]:
        table = _table("DOMAIN", "HAS", "NEEDS", "LACKS", "NODES WITHOUT ROOM")
        for row in told["domains"]:
            why = ", ".join(f"{b['nodes']} {b['why']}" for b in row["blockers"])
            lacks = max(0, row["need"] - row["have"])
            cells = row["domain"] or "(whole cluster)", row["have"], row["need"], lacks or "sizes don't match"
            table.add_row(*map(str, cells), why or "-")
        parts.append(table)
    parts += [Text(hint, "dim") for hint in told["hints"]]
    if proposal := told.get("proposal"):
        parts.append(Text(_proposed(proposal)))
    return Group(*parts)


def _proposed(proposal: Row) -> str:
    """The moves of a dry run, as a sentence."""
    rows = proposal["moves"]
    moves = [f"{row['gang']} ({row['members']}) to {row['target'] or 'other nodes'}" for row in rows]
    return f"It would fit {proposal['domain']} if others moved: {', '.join(moves)}. Nobody is moved."


def cliques(rows: Sequence[Row]) -> RenderableType:
    """One bar a clique."""
    table = _table("CLIQUE", "NODES", "GPUS", "USED", "PROMISED", "FREE", "")
    for row in rows:
        free = row["gpus"] - row["used"] - row["promised"]
        numbers = row["nodes"], row["gpus"], row["used"], row["promised"], free
        table.add_row(row["clique"] or "(none)", *map(str, numbers), bar(row))
    return table


def bar(row: Row) -> Text:
    """GPUs as characters: used #, promised =, free a dot, so that it can be read without colours."""
    total = max(1, row["gpus"])
    used = round(_BAR * min(row["used"], total) / total)
    promised = min(_BAR - used, round(_BAR * row["promised"] / total))
    free = _BAR - used - promised
    return Text.assemble(("#" * used, "green"), ("=" * promised, "cyan"), ("." * free, "dim"))


def age(seconds: float) -> str:
    """As kubectl writes it: the largest unit, 47s, 12m, 5h, 3d."""
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return "0s"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table
