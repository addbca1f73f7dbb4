"""Objects from files in the place of an API server, for the webhook's look-ups."""

from collections.abc import Iterable, Mapping

from allaboard.manifests import Json, Manifest
from webhook import priority, sets
from webhook.lookup import PATHS, TOPOLOGIES


class Objects:
    """A webhook.lookup.Reader over manifests.

    defaults: objects that Allaboard itself creates where they are absent; they never hide one of the files.
    """

    def __init__(self, manifests: Iterable[Manifest], defaults: Iterable[Manifest]) -> None:
        topologies: dict[str, Json] = {}
        self._by_path: dict[str, Json] = {TOPOLOGIES: {}}
        for manifest in (*defaults, *manifests):
            if manifest.kind == "Topology":
                topologies[manifest.name] = _checked(manifest)
            elif manifest.kind == "Namespace":
                self._by_path[f"/api/v1/namespaces/{manifest.name}"] = manifest.body
            elif manifest.kind == "PriorityClass":
                self._by_path[priority.PATH.format(manifest.name)] = manifest.body
            elif manifest.kind == "PodGroup":
                self._by_path[_group_path(manifest)] = manifest.body
            elif manifest.kind in sets.KINDS:
                for path in sets.paths(manifest.kind, manifest.namespace, manifest.name):
                    self._by_path[path] = _identified(manifest)
            elif manifest.kind in PATHS:
                self._by_path[_path(manifest)] = _identified(manifest)
        self._by_path[TOPOLOGIES] = {"items": list(topologies.values())}

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        return self._by_path.get(path)


def _path(manifest: Manifest) -> str:
    return PATHS[manifest.kind].format(manifest.namespace, manifest.name)


def _group_path(manifest: Manifest) -> str:
    version = manifest.body.get("apiVersion", "")
    return f"/apis/{version}/namespaces/{manifest.namespace}/podgroups/{manifest.name}"


def _identified(manifest: Manifest) -> Json:
    # A file has no UIDs; the Pods that workloads.py makes name "" as well.
    meta = {
        **manifest.body["metadata"],
        "name": manifest.name,
        "namespace": manifest.namespace,
        "uid": "",
        "ownerReferences": [],
    }
    return {**manifest.body, "metadata": meta}


def _checked(manifest: Manifest) -> Json:
    spec = manifest.body.get("spec")
    levels = spec.get("levels") if isinstance(spec, dict) else None
    if not isinstance(levels, list) or not all(_is_level(level) for level in levels):
        raise manifest.wrong("spec.levels", "a list of maps with a nodeLabel each is allowed")
    return manifest.body


def _is_level(level: object) -> bool:
    return isinstance(level, dict) and isinstance(level.get("nodeLabel"), str)
