"""Owners that KAI looks past: what owns the Pods below them makes the gang, and their keys count for it.

    TrainJob ──► JobSet          DynamoGraphDeployment ──► LeaderWorkerSet, Deployment
    Workflow (Argo) ──► Pods that are placed each by itself

Labels and annotations of such an owner are those of what it makes, unless that has its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webhook.pod import Controller, Owner, Pod

Json = Mapping[str, Any]

_PATHS: Final = {
    ("trainer.kubeflow.org", "TrainJob"): "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}",
    ("argoproj.io", "Workflow"): "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows/{}",
    (
        "nvidia.com",
        "DynamoComponentDeployment",
    ): "/apis/nvidia.com/v1alpha1/namespaces/{}/dynamocomponentdeployments/{}",
    (
        "nvidia.com",
        "DynamoGraphDeployment",
    ): "/apis/nvidia.com/v1alpha1/namespaces/{}/dynamographdeployments/{}",
}
MOST: Final = 3  # owners above one another; more would be a loop


def path(namespace: str, reference: Controller | None) -> str:
    """Where the API server has this owner, "" where it is none that is looked past."""
    pattern = _PATHS.get((reference.group, reference.kind), "") if reference else ""
    return pattern.format(namespace, reference.name) if reference else ""


def below(owner: Owner | None, pod: Pod, above: Json) -> Owner | None:
    """The owner with the keys of one above it; a Pod that has none else belongs to nobody but that one."""
    meta = above.get("metadata", {})
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    if owner is None and pod.controller is not None:
        owner = Owner(
            kind=pod.controller.kind,
            namespace=pod.namespace,
            name=pod.controller.name,
            uid=pod.controller.uid,
            labels={},
            annotations={},
            interchangeable=True,
        )
    if owner is None:
        return None
    return replace(owner, labels={**labels, **owner.labels}, annotations={**annotations, **owner.annotations})
