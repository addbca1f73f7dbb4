"""What the webhook assumed or could not understand, carried on the Pod to whoever can say it aloud.

Pods are never denied, so the webhook writes notes into an annotation and the extender turns them into
events. A blocking note says that the promise can't even be stated (an unknown topology level, a
minMember that is no number): its gang waits until the note no longer holds.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """One remark on a workload.

    message: a sentence that names object, field, value and what is allowed.
    blocking: the gang may not board while this holds.
    topology: name of the Topology whose creation would lift a blocking note, "" if none would.
    level: the level (a node label key) that this Topology would have to hold.
    """

    message: str
    blocking: bool = False
    topology: str = ""
    level: str = ""


def encode(notes: Iterable[Note]) -> str:
    """The annotation's value: a JSON list with one object a note, empty fields left out."""
    rows = [{key: value for key, value in asdict(note).items() if value} for note in notes]
    return json.dumps(rows, separators=(", ", ": "))


def decode(value: str) -> tuple[Note, ...]:
    """Read an annotation written by encode; what is no such list counts as one plain note.

    Users may write this annotation although they should not, so nothing here may raise.
    """
    try:
        rows = json.loads(value)
        return tuple(_note(row) for row in rows)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return (Note(value),) if value else ()


def _note(row: dict[str, object]) -> Note:
    return Note(
        message=str(row["message"]),
        blocking=row.get("blocking") is True,
        topology=str(row.get("topology", "")),
        level=str(row.get("level", "")),
    )
