"""The PodCliqueSet that Dynamo's operator makes of a DynamoGraphDeployment, as far as scheduling goes.

A service on one node is a PodClique; one on several nodes is a scaling group of a leader and its workers, one
replica of which has to be there. Names are lower case. v1alpha1 (services, a map) and v1beta1 (components, a
list) are read.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allaboard.manifests import Json, Manifest
from gangs import contract

KIND: Final = "DynamoGraphDeployment"
_GROVE: Final = "nvidia.com/enable-grove"


def podcliqueset_of(manifest: Manifest) -> Manifest:
    """The PodCliqueSet; raises ManifestError."""
    meta = manifest.body["metadata"]
    if (meta.get("annotations") or {}).get(_GROVE) == "false":
        problem = (
            '"false": Dynamo then makes Deployments and LeaderWorkerSets (allowed here: those themselves)'
        )
        raise manifest.wrong(f"metadata.annotations.{_GROVE}", problem)
    spec = manifest.body.get("spec")
    if not isinstance(spec, dict):
        raise manifest.wrong("spec", "missing (allowed: a map)")
    template: Json = {"cliques": [], "podCliqueScalingGroups": []}
    for name, service in _services(manifest, spec):
        _add(template, name.lower(), service, _topology(spec))
    if constraint := _constraint(spec, _topology(spec)):
        template["topologyConstraint"] = constraint
    if priority := spec.get("priorityClassName"):
        template["priorityClassName"] = priority
    body = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {**meta, "namespace": manifest.namespace},
        "spec": {"replicas": 1, "template": template},
    }
    return Manifest(manifest.file, body, manifest.source)


def _services(manifest: Manifest, spec: Json) -> Iterator[tuple[str, Json]]:
    services, components = spec.get("services"), spec.get("components")
    if isinstance(services, dict) and all(isinstance(row, dict) for row in services.values()):
        yield from services.items()
    elif isinstance(components, list) and all(isinstance(r, dict) and r.get("name") for r in components):
        yield from ((str(row["name"]), row) for row in components)
    else:
        problem = "missing (allowed: a map of services, or spec.components, a list of maps with a name each)"
        raise manifest.wrong("spec.services", problem)


def _add(template: Json, name: str, service: Json, topology: str) -> None:
    replicas, least = service.get("replicas", 1), service.get("minAvailable", 1)
    constraint = _constraint(service, topology)
    nodes = _nodes(service)
    if nodes < 2:
        clique = _clique(name, service, replicas, least)
        template["cliques"].append(clique | _at(constraint))
        return
    rows = {f"{name}-ldr": 1, f"{name}-wkr": nodes - 1}
    template["cliques"] += [_clique(clique, service, number, number) for clique, number in rows.items()]
    group = {"name": name, "cliqueNames": list(rows), "replicas": replicas, "minAvailable": least}
    template["podCliqueScalingGroups"].append(group | _at(constraint))


def _clique(name: str, service: Json, replicas: int, least: int) -> Json:
    spec = {"roleName": name, "replicas": replicas, "minAvailable": least, "podSpec": _pod_spec(service)}
    return {"name": name, "labels": service.get("labels") or {}, "spec": spec}


def _nodes(service: Json) -> int:
    multinode = service.get("multinode")
    count = multinode.get("nodeCount", 2) if isinstance(multinode, Mapping) else 1
    return count if isinstance(count, int) else 1


def _pod_spec(service: Json) -> Json:
    template = service.get("podTemplate")
    if isinstance(template, Mapping):
        return dict(template.get("spec") or {})
    extra = dict(service.get("extraPodSpec") or {})
    main: dict[str, Any] = {"name": "main", **(extra.pop("mainContainer", None) or {})}
    gpus = ((service.get("resources") or {}).get("limits") or {}).get("gpu")
    if gpus:
        main["resources"] = {"limits": {contract.GPU: str(gpus)}}
    return {**{key: value for key, value in extra.items() if value}, "containers": [main]}


def _topology(spec: Json) -> str:
    constraint = spec.get("topologyConstraint") or {}
    return str(constraint.get("clusterTopologyName") or constraint.get("topologyProfile") or "")


def _constraint(holder: Json, topology: str) -> Json:
    domain = (holder.get("topologyConstraint") or {}).get("packDomain")
    return {"topologyName": topology, "pack": {"required": domain}} if domain else {}


def _at(constraint: Json) -> Json:
    return {"topologyConstraint": constraint} if constraint else {}
