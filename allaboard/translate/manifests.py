"""Manifests from files: YAML documents as objects, each with the file that it came from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]


class ManifestError(Exception):
    """Something that can't be understood; the text names file, object, field and what is allowed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object. file: where it was written."""

    file: str
    body: Json

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace") or "default")

    @property
    def name(self) -> str:
        return str(self.body["metadata"].get("name") or self.body["metadata"].get("generateName") or "")

    @property
    def title(self) -> str:
        return f"{self.kind.lower()} {self.namespace}/{self.name}"

    def wrong(self, field: str, problem: str) -> ManifestError:
        return ManifestError(f"{self.file}: {self.title}: {field}: {problem}")


def load(files: Iterable[Path]) -> list[Manifest]:
    """Every object of the files in order, Lists taken apart; raises ManifestError."""
    return [manifest for file in files for manifest in _read(file)]


def _read(file: Path) -> Iterator[Manifest]:
    try:
        documents = list(yaml.safe_load_all(file.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"{file}: no YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise ManifestError(f"{file}: {error.strerror}") from error
    for document in documents:
        if document is not None:
            yield from _objects(str(file), document)


def _objects(file: str, document: object) -> Iterator[Manifest]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ManifestError(f"{file}: kind: missing (allowed: Kubernetes objects, one a YAML document)")
    if document["kind"] == "List":
        for item in document.get("items") or ():
            yield from _objects(file, item)
        return
    if not isinstance(document.get("metadata"), dict):
        raise ManifestError(f"{file}: {document['kind'].lower()}: metadata: missing (allowed: a map)")
    manifest = Manifest(file, document)
    for field in ("labels", "annotations"):
        _check_strings(manifest, field, document["metadata"].get(field) or {})
    yield manifest


def _check_strings(manifest: Manifest, field: str, entries: object) -> None:
    if not isinstance(entries, Mapping):
        raise manifest.wrong(f"metadata.{field}", f"{entries!r} is no map")
    for key, value in entries.items():
        if not isinstance(value, str):
            raise manifest.wrong(
                f"metadata.{field}.{key}", f"{value!r} is no string (put it in quotation marks)"
            )
