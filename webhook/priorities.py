"""The PriorityClass that a workload asks for outside of its Pod template.

A name is taken only where the class exists: the API server refuses a Pod that names one which does not.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook.sets.common import is_name, mapping

_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/{}"


def path(name: str) -> str:
    """Where the API server has the class, "" where the name can be none."""
    return _PATH.format(name) if is_name(name) else ""


def of_podgang(podgang: Mapping[str, Any] | None) -> str:
    """Grove writes the class of a PodCliqueSet onto the PodGang and not onto its Pods."""
    return str(mapping(podgang or {}, "spec").get("priorityClassName") or "")
