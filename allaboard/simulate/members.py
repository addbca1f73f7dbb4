"""The Pods that a manifest leads to, as they are once the webhook has seen them.

StatefulSet, Job, Deployment ──► a Pod per replica ──► webhook's pure decision ──► patched Pods
"""

import copy
from collections.abc import Sequence
from typing import Any, Final

import orjson

from allaboard.manifests import Json, Manifest
from allaboard.simulate.models import parsed
from gangs import contract
from webhook import read, wire
from webhook.mutate import decide, is_ours_to_touch
from webhook.patch import Operation
from webhook.pod import Owner, Surroundings, Topology

PROFILES: Final = (contract.SCHEDULER_NAME, contract.KAI_SCHEDULER_NAME)
KINDS: Final = ("Pod", "StatefulSet", "Job", "Deployment")


def members(manifest: Manifest, topologies: tuple[Topology, ...]) -> list[Json]:
    """Every Pod of the workload, mutated."""
    if manifest.kind not in KINDS:
        raise manifest.wrong("kind", f"{manifest.kind} is not simulated (allowed: {', '.join(KINDS)})")
    return parsed(manifest, lambda body: _members(body, topologies))


def _members(body: Json, topologies: tuple[Topology, ...]) -> list[Json]:
    body = copy.deepcopy(body)
    meta = body["metadata"]
    meta.setdefault("namespace", "default")
    meta.setdefault("uid", f"u-{meta['name']}")
    if body["kind"] == "Pod":
        return [_mutated(body, None, topologies)]
    owner = read.owner(body["kind"], body)
    return [_mutated(_pod(body, i), owner, topologies) for i in range(owner.size or 0)]


def _pod(owner: Json, index: int) -> Json:
    template, meta = copy.deepcopy(owner["spec"]["template"]), owner["metadata"]
    name = f"{meta['name']}-{index}"
    version = owner.get("apiVersion", "")
    reference = {
        "apiVersion": version,
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    placed = {
        "name": name,
        "uid": f"u-{name}",
        "namespace": meta["namespace"],
        "ownerReferences": [reference],
    }
    return {"metadata": {**(template.get("metadata") or {}), **placed}, "spec": template["spec"]}


def _mutated(pod: Json, owner: Owner | None, topologies: tuple[Topology, ...]) -> Json:
    try:
        asked = wire.parse(orjson.dumps(wire.review(pod))).pod
    except wire.MalformedReviewError as error:
        raise ValueError(str(error).removeprefix("AdmissionReview: ")) from error
    if asked is None or not is_ours_to_touch(asked, PROFILES):
        return pod
    return _patched(pod, decide(asked, Surroundings(owner, {}, topologies), PROFILES))


def _patched(pod: Json, operations: Sequence[Operation]) -> Json:
    for operation in operations:
        *parents, last = (p.replace("~1", "/").replace("~0", "~") for p in operation["path"][1:].split("/"))
        target: Any = pod
        for key in parents:
            target = target[int(key)] if isinstance(target, list) else target[key]
        if operation["op"] == "remove":
            del target[last]
        elif isinstance(target, list):
            target.append(operation["value"])
        else:
            target[last] = operation["value"]
    return pod
