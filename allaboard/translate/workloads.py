"""A workload's Pod as its controller would create it: the one that the webhook would be shown."""

from collections.abc import Mapping
from typing import Any, Final

from allaboard.manifests import Json, Manifest
from allaboard.translate import dynamo, grove, sets
from webhook.sets import KINDS as KINDS_OF_SETS

_TEMPLATED: Final = frozenset({"StatefulSet", "Deployment", "ReplicaSet", "Job", "DaemonSet"})
_COUNTS: Final = ("replicas", "parallelism", "completions")
# Keys under which the kinds of others hold what becomes Pods.
_POD_FIELDS: Final = frozenset({"containers", "podSpec", "extraPodSpec"})
_MADE_FIRST: Final = frozenset({"CronJob", dynamo.KIND, grove.KIND})
KINDS: Final = ", ".join(sorted({"Pod", *_MADE_FIRST, *_TEMPLATED, *KINDS_OF_SETS}))


def owner_of(manifest: Manifest) -> Manifest:
    """The object that will own the Pods: the Job of a CronJob, else the workload itself."""
    if manifest.kind != "CronJob":
        return manifest
    job = _map(
        manifest, "spec.jobTemplate", _map(manifest, "spec", manifest.body.get("spec")).get("jobTemplate")
    )
    meta = {**(job.get("metadata") or {}), "name": manifest.name, "namespace": manifest.namespace}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job.get("spec")}
    return Manifest(manifest.file, body, manifest.part("spec.jobTemplate"))


def pod_of(manifest: Manifest) -> Json | None:
    """The Pod, None where the object makes none; raises ManifestError."""
    if manifest.kind == "Pod":
        _map(manifest, "spec", manifest.body.get("spec"))
        meta = {**manifest.body["metadata"], "namespace": manifest.namespace}
        return {**manifest.body, "metadata": meta}
    if manifest.kind in _TEMPLATED:
        return _templated(manifest)
    if manifest.kind in KINDS_OF_SETS:
        return sets.pod_of(manifest)
    if _holds_pods(manifest.body.get("spec")):
        raise manifest.wrong("kind", f'"{manifest.kind}" is not understood (allowed: {KINDS})')
    return None


def _templated(manifest: Manifest) -> Json:
    spec = _map(manifest, "spec", manifest.body.get("spec"))
    for field in _COUNTS:
        _check_count(manifest, field, spec.get(field, 0))
    template = _map(manifest, "spec.template", spec.get("template"))
    pod_spec = _map(manifest, "spec.template.spec", template.get("spec"))
    reference = {"kind": manifest.kind, "name": manifest.name, "uid": "", "controller": True}
    meta = {
        **(template.get("metadata") or {}),
        "namespace": manifest.namespace,
        "generateName": f"{manifest.name}-",
        "ownerReferences": [reference],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec}


def _check_count(manifest: Manifest, field: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise manifest.wrong(f"spec.{field}", f"{value!r} is no number (allowed: a whole number from 0)")


def _map(manifest: Manifest, field: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise manifest.wrong(field, "missing (allowed: a map)")
    return value


def _holds_pods(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(key in _POD_FIELDS or _holds_pods(inner) for key, inner in value.items())
    return isinstance(value, list) and any(_holds_pods(inner) for inner in value)
