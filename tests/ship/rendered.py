"""Manifests as objects that can be compared: what each tool adds of its own is taken away."""

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]
Objects = dict[tuple[str, str], Json]

_LABELS: Final = ("app.kubernetes.io/part-of",)
_ANNOTATIONS: Final = ("checksum/configuration",)
_HASHED: Final = re.compile(r"allaboard-kube-scheduler-[a-z0-9]{10}$")


def kustomized(kubectl: Path, manifests: Path, components: Sequence[str], scratch: Path) -> Objects:
    """The base with these components."""
    subprocess.run(["cp", "-r", manifests, scratch / "manifests"], check=True)
    overlay = scratch / "manifests" / "overlays" / "tried"
    overlay.mkdir()
    body = {
        "resources": ["../../base"],
        "components": [f"../../components/{name}" for name in components],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(body))
    done = subprocess.run(
        [kubectl, "kustomize", overlay], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return by_name(yaml.safe_load_all(done.stdout))


def by_name(objects: Iterable[Json | None]) -> Objects:
    """By kind and name; no two may share both."""
    found: Objects = {}
    for obj in objects:
        if obj:
            plain = _plain(obj)
            key = plain["kind"], plain["metadata"]["name"]
            assert key not in found, key
            found[key] = plain
    return found


def _plain(value: Any) -> Any:
    """Without kustomize's hash in names and comments in configuration files, and without marks of either."""
    match value:
        case dict():
            rows = {key: _plain(row) for key, row in value.items()}
            for field, names in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
                if isinstance(rows.get(field), dict):
                    rows[field] = {k: v for k, v in rows[field].items() if k not in names}
                    if not rows[field]:
                        del rows[field]
            if "kube-scheduler.yaml" in rows:
                rows["kube-scheduler.yaml"] = yaml.safe_load(rows["kube-scheduler.yaml"])
            return rows
        case list():
            return [_plain(row) for row in value]
        case str() if _HASHED.fullmatch(value):
            return "allaboard-kube-scheduler"
    return value
