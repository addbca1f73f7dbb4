"""Workloads above a Pod's controller, which say who belongs together: found by labels on the Pod.

The controllers of such sets label each Pod with the set's name and its own place in it, so one look-up by
name finds what several hops of owner references would. The dialects then see the set's group in the place
of the owner:

    lws        each group (a leader and its workers) by itself, size members
    jobset     all of its Jobs together; each Job by itself where each is to have a domain of its own
    kubeflow   all replicas of a PyTorchJob, TFJob, XGBoostJob, JAXJob or MPIJob
    ray        head and workers of a RayCluster
    spark      driver and executors of one application

Some controllers create the rest only once the first member is scheduled. Such a group has a floor of one:
waiting for the others would be waiting for ever. Its first member still goes where all have room.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from webhook.pod import Owner, Pod
from webhook.sets import jobset, kubeflow, lws, ray, spark
from webhook.sets.common import is_name

_KINDS: Final[tuple[ModuleType, ...]] = (lws, jobset, kubeflow, ray, spark)


KINDS: Final = (*lws.PATHS, *jobset.PATHS, *kubeflow.PATHS, *ray.PATHS)


def paths(kind: str, namespace: str, name: str) -> list[str]:
    """Where the API server may have a set of this kind."""
    known: Mapping[str, Sequence[str]] = {**lws.PATHS, **jobset.PATHS, **kubeflow.PATHS, **ray.PATHS}
    return [path.format(namespace, name) for path in known[kind]]


def path(pod: Pod) -> str:
    """Where the API server has the set that this Pod names, "" if it names none."""
    for kind in _KINDS:
        name = pod.labels.get(kind.NAME, "")
        where = kind.where(pod) if is_name(name) else ""
        if where:
            return str(where.format(pod.namespace, name))
    return ""


def group_of(pod: Pod, found: Mapping[str, Any] | None) -> Owner | None:
    """The group of the set that this Pod belongs to; None where it is of no set, or its set isn't known.

    found: the set as the API server has it, None where it could not be read.
    """
    for kind in _KINDS:
        if kind.NAME in pod.labels:
            group: Owner | None = kind.group(pod, found or {})
            return group
    return None
