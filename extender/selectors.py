"""meta/v1 LabelSelectors."""

from collections.abc import Mapping
from typing import Any


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels are selected. An empty selector takes everything, none takes nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    rows = selector.get("matchExpressions") or ()
    return all(labels.get(k) == v for k, v in wanted.items()) and all(_holds(row, labels) for row in rows)


def _holds(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = row["key"], row.get("values") or ()
    match row["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
