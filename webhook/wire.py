"""What goes over the wire: AdmissionReview v1 in, AdmissionReview v1 out.

pydantic checks the envelope and those parts of the Pod that the webhook reads, so that everything
behind this module may trust their shape. The Pod itself goes on as the JSON that it came as, because a
JSON patch must fit exactly that.

    bytes ──parse──► Admission(uid, Pod) ──► ... operations ... ──answer──► bytes
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from webhook.patch import Operation
from webhook.pod import Controller, Pod

_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


class MalformedReviewError(Exception):
    """The body is no AdmissionReview of a Pod; the text names the field and what is allowed."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _OwnerReference(_Wire):
    apiVersion: str = ""  # noqa: N815
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class _Metadata(_Wire):
    name: str | None = None
    generateName: str | None = None  # noqa: N815 - the wire's spelling
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[_OwnerReference] | None = None  # noqa: N815


class _Resources(_Wire):
    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class _Container(_Wire):
    resources: _Resources | None = None


class _NodeSelectorTerm(_Wire):
    matchExpressions: list[dict[str, Any]] | None = None  # noqa: N815
    matchFields: list[dict[str, Any]] | None = None  # noqa: N815


class _NodeSelector(_Wire):
    nodeSelectorTerms: list[_NodeSelectorTerm] | None = None  # noqa: N815


class _NodeAffinity(_Wire):
    requiredDuringSchedulingIgnoredDuringExecution: _NodeSelector | None = None  # noqa: N815


class _PodAffinity(_Wire):
    requiredDuringSchedulingIgnoredDuringExecution: list[dict[str, Any]] | None = None  # noqa: N815
    preferredDuringSchedulingIgnoredDuringExecution: list[dict[str, Any]] | None = None  # noqa: N815


class _Affinity(_Wire):
    nodeAffinity: _NodeAffinity | None = None  # noqa: N815
    podAffinity: _PodAffinity | None = None  # noqa: N815


class _Gate(_Wire):
    name: str


class _Spec(_Wire):
    schedulerName: str | None = None  # noqa: N815
    nodeName: str | None = None  # noqa: N815
    containers: list[_Container] | None = None
    initContainers: list[_Container] | None = None  # noqa: N815
    resourceClaims: list[dict[str, Any]] | None = None  # noqa: N815
    schedulingGates: list[_Gate] | None = None  # noqa: N815
    schedulingGroup: dict[str, Any] | None = None  # noqa: N815
    affinity: _Affinity | None = None


class _Pod(_Wire):
    metadata: _Metadata
    spec: _Spec


class _Kind(_Wire):
    group: str = ""
    kind: str


class _Request(_Wire):
    uid: str
    kind: _Kind
    operation: str
    namespace: str = ""
    subResource: str = ""  # noqa: N815
    object: dict[str, Any] | None = None


class _Review(_Wire):
    apiVersion: Literal["admission.k8s.io/v1"]  # noqa: N815
    kind: Literal["AdmissionReview"]
    request: _Request


class Admission:
    """One question of the API server: its uid, and the new Pod, or None where it is about something else."""

    __slots__ = ("pod", "uid")

    def __init__(self, uid: str, pod: Pod | None) -> None:
        self.uid = uid
        self.pod = pod


def review(pod: dict[str, Any]) -> dict[str, Any]:
    """The AdmissionReview in which the API server would show us this new Pod."""
    request = {"uid": "1", "kind": {"kind": "Pod"}, "operation": "CREATE", "object": pod}
    return {"apiVersion": _VERSION, "kind": _KIND, "request": request}


def parse(body: bytes) -> Admission:
    """Read an AdmissionReview; raises MalformedReviewError."""
    try:
        request = _Review.model_validate(orjson.loads(body)).request
        if not _creates_a_pod(request):
            return Admission(request.uid, None)
        if request.object is None:
            raise MalformedReviewError("AdmissionReview: request.object: missing; a Pod is expected")
        return Admission(
            request.uid, _pod(request.object, _Pod.model_validate(request.object), request.namespace)
        )
    except orjson.JSONDecodeError as error:
        raise MalformedReviewError(f"AdmissionReview: the body is no JSON: {error}") from error
    except ValidationError as error:
        raise MalformedReviewError(_sentence(error)) from error


def answer(uid: str, operations: Sequence[Operation], warnings: Sequence[str] = ()) -> bytes:
    """The AdmissionReview that allows the Pod with these changes. Pods are never denied."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if operations:
        response |= {"patchType": "JSONPatch", "patch": b64encode(orjson.dumps(operations)).decode()}
    if warnings:
        response["warnings"] = list(warnings)
    return orjson.dumps({"apiVersion": _VERSION, "kind": _KIND, "response": response})


def _creates_a_pod(request: _Request) -> bool:
    of_pods = request.kind.group == "" and request.kind.kind == "Pod" and not request.subResource
    return of_pods and request.operation == "CREATE"


def _pod(raw: dict[str, Any], wire: _Pod, namespace: str) -> Pod:
    meta, spec = wire.metadata, wire.spec
    return Pod(
        raw=raw,
        namespace=namespace or meta.namespace or "default",
        name=meta.name or meta.generateName or "",
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        controller=_controller(meta.ownerReferences or []),
        scheduler=spec.schedulerName or "",
        node=spec.nodeName or "",
        natively_grouped=spec.schedulingGroup is not None,
        resources=_resources(spec),
        claims=bool(spec.resourceClaims),
    )


def _controller(references: list[_OwnerReference]) -> Controller | None:
    for reference in references:
        if reference.controller:
            return Controller(reference.kind, reference.name, reference.uid, reference.apiVersion)
    return None


def _resources(spec: _Spec) -> frozenset[str]:
    containers = [*(spec.containers or []), *(spec.initContainers or [])]
    asked = [c.resources for c in containers if c.resources]
    return frozenset(name for r in asked for names in (r.limits, r.requests) for name in names or ())


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the body"
    return f"{_KIND}: {where}: {first['msg']}"
