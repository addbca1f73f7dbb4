"""Manifests from a file, each with the line that it begins at, so that complaints name line and field."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from allaboard.errors import UserError

Json = dict[str, Any]
Value = TypeVar("Value")

_EMPTY = "tag:yaml.org,2002:null"  # what stands between two "---"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file. line: where it begins, counted from 1."""

    path: Path
    line: int
    body: Json

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    def error(self, field: str, why: str) -> UserError:
        """A complaint about one of its fields."""
        name = (self.body.get("metadata") or {}).get("name", "")
        return UserError(f"{self.path}:{self.line}: {self.kind} {name}: {field}: {why}")

    def read(self, parse: Callable[[Json], Value]) -> Value:
        """What parse makes of the object; whatever it trips over becomes a complaint."""
        try:
            return parse(self.body)
        except KeyError as error:
            raise self.error(str(error.args[0]), "missing") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise self.error("value", str(error)) from error


def load(path: Path) -> list[Manifest]:
    """All objects of the file's documents, those inside a List one by one."""
    try:
        documents = list(yaml.compose_all(path.read_text(), Loader=yaml.SafeLoader))
        return [found for node in documents if node.tag != _EMPTY for found in _objects(path, node)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML: {error}") from error


def _objects(path: Path, node: yaml.Node) -> Iterator[Manifest]:
    line = node.start_mark.line + 1
    body = yaml.SafeLoader("").construct_document(node)
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise UserError(f"{path}:{line}: kind: missing; a Kubernetes object is expected")
    if body["kind"] != "List":
        if not isinstance(body.get("metadata"), dict) or not body["metadata"].get("name"):
            raise UserError(f"{path}:{line}: {body['kind']}: metadata.name: missing")
        yield Manifest(path, line, body)
        return
    assert isinstance(node, yaml.MappingNode)
    items = next((value for key, value in node.value if key.value == "items"), None)
    if not isinstance(items, yaml.SequenceNode):
        raise UserError(f"{path}:{line}: List: items: a list of objects is expected")
    for item in items.value:
        yield from _objects(path, item)
