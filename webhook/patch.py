"""A JSON patch (RFC 6902) from what a Pod is to what it shall be.

A patch whose parent path is missing fails the whole request even where the webhook may be ignored, so
every step here makes its parent first. What is already as it shall be makes no step.
"""

from collections.abc import Mapping
from typing import Any

Operation = dict[str, Any]


def pointer(*parts: str) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def set_field(parent: Mapping[str, Any], at: tuple[str, ...], value: Any) -> list[Operation]:
    """Set the field at the path's end, whose parent exists, to value."""
    return [] if parent.get(at[-1]) == value else [{"op": "add", "path": pointer(*at), "value": value}]


def set_entries(
    parent: Mapping[str, Any], at: tuple[str, ...], entries: Mapping[str, str]
) -> list[Operation]:
    """Set entries of the string map at the path, making the map where there is none."""
    present = parent.get(at[-1])
    if present is None:
        return [{"op": "add", "path": pointer(*at), "value": dict(entries)}] if entries else []
    return [
        {"op": "add", "path": pointer(*at, key), "value": value}
        for key, value in entries.items()
        if present.get(key) != value
    ]


def remove_entries(parent: Mapping[str, Any], at: tuple[str, ...], keys: tuple[str, ...]) -> list[Operation]:
    """Remove these keys from the map at the path, where they are."""
    present = parent.get(at[-1]) or {}
    return [{"op": "remove", "path": pointer(*at, key)} for key in keys if key in present]


def remove_fields(parent: Mapping[str, Any], at: tuple[str, ...], names: tuple[str, ...]) -> list[Operation]:
    """Remove these fields of the object at the path, where they are."""
    return [{"op": "remove", "path": pointer(*at, name)} for name in names if name in parent]


def append(parent: Mapping[str, Any], at: tuple[str, ...], item: Mapping[str, Any]) -> list[Operation]:
    """Append item to the list at the path unless it is there, making the list where there is none."""
    present = parent.get(at[-1])
    if present is None:
        return [{"op": "add", "path": pointer(*at), "value": [dict(item)]}]
    return [] if item in present else [{"op": "add", "path": pointer(*at, "-"), "value": dict(item)}]
