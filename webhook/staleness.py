"""How long a gang may run on below its floor, as written on a Pod or its owner (rule 17 of the design)."""

from gangs import contract
from gangs.durations import DurationError, seconds
from gangs.notes import Note
from webhook.pod import Owner, Pod


def staleness(pod: Pod, owner: Owner | None, key: str) -> tuple[dict[str, str], tuple[Note, ...]]:
    """Our annotation with that period, and what is wrong with it: KAI ignores one that it can't read."""
    holder = owner if owner and key in owner.annotations else pod
    text = holder.annotations.get(key, "")
    try:
        seconds(text or "0s")
    except DurationError:
        message = (
            f'{holder.title}: annotation {key}: "{text}" is no duration and is ignored '
            "(allowed: like 60s or 5m; negative for never)"
        )
        return {}, (Note(message),)
    return {contract.ANNOTATION_STALENESS: text} if text else {}, ()
