"""A live cluster as one file that `allaboard simulate` reads."""

from pathlib import Path
from typing import Any, Final

import yaml

from extender import topologies
from extender.api import connect

Json = dict[str, Any]

_SOURCES: Final = (
    ("v1", "Node", "/api/v1/nodes"),
    ("v1", "Pod", "/api/v1/pods"),
    ("kai.scheduler/v1alpha1", "Topology", topologies.PATH),
)
_PRIVATE: Final = ("env", "envFrom", "command", "args")  # may hold secrets, and the planner reads none


async def snapshot(kubeconfig: Path | None) -> str:
    """Nodes, Pods and Topologies as a YAML List; where Topologies are not installed, without them."""
    api = await connect(kubeconfig)
    try:
        items = []
        for version, kind, path in _SOURCES:
            listing = await api.get(path) or {"items": []}
            items += [trimmed({"apiVersion": version, "kind": kind, **item}) for item in listing["items"]]
    finally:
        await api.close()
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=False)


def trimmed(item: Json) -> Json:
    item["metadata"].pop("managedFields", None)
    (item["metadata"].get("annotations") or {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in (item.get("spec") or {}).get(field) or ():
            for name in _PRIVATE:
                container.pop(name, None)
    return item
