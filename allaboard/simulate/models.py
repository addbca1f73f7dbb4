"""What simulate reads of the objects in its files, checked field by field before anything is computed.

Files are written by people, and no API server has looked at them. Fields that simulate doesn't read are
not looked at.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from allaboard.manifests import Json, Manifest
from gangs.quantities import amount

Value = TypeVar("Value")


def _quantity(text: str | int | float) -> str | int | float:
    amount("", text)
    return text


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


_Quantities = dict[str, Annotated[str | int | float, AfterValidator(_quantity)]]
_Count = Annotated[int, Field(ge=0)]


class _Taint(_Model):
    key: str
    value: str | None = None
    effect: str | None = None


class _Condition(_Model):
    type: str
    status: str


class _NodeSpec(_Model):
    taints: list[_Taint] | None = None
    unschedulable: bool | None = None


class _NodeStatus(_Model):
    allocatable: _Quantities | None = None
    conditions: list[_Condition] | None = None


class _Node(_Model):
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _Resources(_Model):
    requests: _Quantities | None = None
    limits: _Quantities | None = None


class _Container(_Model):
    resources: _Resources | None = None
    restartPolicy: str | None = None  # noqa: N815 - the wire's spelling


class _Requirement(_Model):
    key: str
    operator: str
    values: list[str] | None = None


class _Term(_Model):
    matchExpressions: list[_Requirement] | None = None  # noqa: N815
    matchFields: list[_Requirement] | None = None  # noqa: N815


class _NodeSelector(_Model):
    nodeSelectorTerms: list[_Term]  # noqa: N815


class _NodeAffinity(_Model):
    requiredDuringSchedulingIgnoredDuringExecution: _NodeSelector | None = None  # noqa: N815


class _Affinity(_Model):
    nodeAffinity: _NodeAffinity | None = None  # noqa: N815


class _Toleration(_Model):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _PodSpec(_Model):
    containers: list[_Container] | None = None
    initContainers: list[_Container] | None = None  # noqa: N815
    overhead: _Quantities | None = None
    resources: _Resources | None = None
    nodeName: str | None = None  # noqa: N815
    nodeSelector: dict[str, str] | None = None  # noqa: N815
    affinity: _Affinity | None = None
    tolerations: list[_Toleration] | None = None
    priority: int | None = None


class _Pod(_Model):
    spec: _PodSpec


class _TemplateSpec(_Model):
    replicas: _Count | None = None
    parallelism: _Count | None = None
    completions: _Count | None = None
    template: _Pod


class _Workload(_Model):
    spec: _TemplateSpec


class _Level(_Model):
    nodeLabel: str  # noqa: N815
    alias: str | None = None


class _TopologySpec(_Model):
    levels: Annotated[list[_Level], Field(min_length=1)]


class _Topology(_Model):
    spec: _TopologySpec


_MODELS: Final[dict[str, type[_Model]]] = {
    "Node": _Node,
    "Pod": _Pod,
    "Topology": _Topology,
    **dict.fromkeys(("Deployment", "Job", "StatefulSet"), _Workload),
}


def parsed(manifest: Manifest, parse: Callable[[Json], Value]) -> Value:
    """What parse makes of the object, once it is known to be well formed; raises ManifestError."""
    model = _MODELS.get(manifest.kind)
    try:
        if model:
            model.model_validate(manifest.body)
        return parse(manifest.body)
    except ValidationError as error:
        field, problem = _first(error)
        raise manifest.wrong(field, problem) from error
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise manifest.wrong("value", str(error)) from error


def _first(error: ValidationError) -> tuple[str, str]:
    """Field and problem of what is wrong first."""
    found: dict[str, Any] = dict(error.errors(include_url=False)[0])
    # A quantity is a union, and pydantic ends its path with the type that was tried.
    path = [str(part) for part in found["loc"] if "function-after[" not in str(part)]
    problem = "missing" if found["type"] == "missing" else str(found["msg"]).removeprefix("Value error, ")
    return ".".join(path), problem
