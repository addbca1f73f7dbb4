"""Kubernetes manifests from files, each remembering where every field of it was written.

Used by commands that work without a cluster. A complaint names file, line, object and field.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from allaboard.errors import UserError

Json = dict[str, Any]

_EMPTY: Final = "tag:yaml.org,2002:null"  # what stands between two "---"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times as fast


class ManifestError(UserError):
    """Something that can't be understood; the text names file, line, object, field and what is allowed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object. file: where it was written. source: its YAML, None where it was made by us."""

    file: str
    body: Json
    source: yaml.Node | None = field(default=None, repr=False, compare=False)

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
        """A complaint about a field, given by its path (spec.containers.0.name)."""
        return ManifestError(f"{self.place(field)}: {self.title}: {field}: {problem}")

    def place(self, field: str = "") -> str:
        """File and line (from 1) of a field, or of what is nearest above it where it is missing."""
        return f"{self.file}:{_find(self.source, field)[0]}" if self.source else self.file

    def part(self, field: str) -> yaml.Node | None:
        """The YAML of a field, for an object that is to be made of it."""
        return _find(self.source, field)[1] if self.source else None


def load(files: Iterable[Path]) -> list[Manifest]:
    """Every object of the files in order, Lists taken apart; raises ManifestError."""
    return [manifest for file in files for manifest in _read(file)]


def _read(file: Path) -> Iterator[Manifest]:
    try:
        documents = list(yaml.compose_all(file.read_text(), Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ManifestError(f"{file}:{line}: no YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"{file}: no YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise ManifestError(f"{file}: {error.strerror}") from error
    for document in documents:
        if document.tag != _EMPTY:
            yield from _objects(str(file), document)


def _objects(file: str, source: yaml.Node) -> Iterator[Manifest]:
    where = f"{file}:{source.start_mark.line + 1}"
    body = _constructed(source, where)
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise ManifestError(f"{where}: kind: missing (allowed: Kubernetes objects, one a YAML document)")
    if body["kind"] == "List":
        for item in _items(source, where):
            yield from _objects(file, item)
        return
    if not isinstance(body.get("metadata"), dict):
        raise ManifestError(f"{where}: {body['kind'].lower()}: metadata: missing (allowed: a map)")
    manifest = Manifest(file, body, source)
    if not manifest.name:
        raise manifest.wrong("metadata.name", "missing (allowed: a name)")
    for entries in ("labels", "annotations"):
        _check_strings(manifest, entries, body["metadata"].get(entries) or {})
    yield manifest


def _constructed(source: yaml.Node, where: str) -> object:
    try:
        return yaml.SafeLoader("").construct_document(source)
    except yaml.MarkedYAMLError as error:
        raise ManifestError(f"{where}: no YAML: {error.problem}") from error
    except ValueError as error:  # a date that is none, such as 2026-13-45
        raise ManifestError(f"{where}: no YAML: {error}") from error


def _items(source: yaml.Node, where: str) -> list[yaml.Node]:
    items = next((value for key, value in source.value if key.value == "items"), None)
    if not isinstance(items, yaml.SequenceNode):
        raise ManifestError(f"{where}: list: items: missing (allowed: a list of Kubernetes objects)")
    return list(items.value)


def _check_strings(manifest: Manifest, field: str, entries: object) -> None:
    if not isinstance(entries, dict):
        raise manifest.wrong(f"metadata.{field}", f"{entries!r} is no map")
    for key, value in entries.items():
        if not isinstance(value, str):
            raise manifest.wrong(
                f"metadata.{field}.{key}", f"{value!r} is no string (put it in quotation marks)"
            )


def _find(node: yaml.Node, field: str) -> tuple[int, yaml.Node]:
    """The field, or the last part of its path that exists: the line on which it begins, and its value."""
    line = int(node.start_mark.line) + 1
    found = _inner(node, field)
    while found:
        key, node, field = found
        line = int(key.start_mark.line) + 1
        found = _inner(node, field)
    return line, node


def _inner(node: yaml.Node, path: str) -> tuple[yaml.Node, yaml.Node, str] | None:
    """Key, value and rest of the path. Keys may hold dots, so the path is compared, not taken apart."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if path == key.value or path.startswith(f"{key.value}."):
                return key, value, path[len(key.value) + 1 :]
    if isinstance(node, yaml.SequenceNode):
        index, _, rest = path.partition(".")
        if index.isdecimal() and int(index) < len(node.value):
            return node.value[int(index)], node.value[int(index)], rest
    return None
