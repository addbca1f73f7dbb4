"""Random (Pod, node) pairs, a generator a rule of kube-scheduler.

    rule(random) ──► Pair: a node, who sits on it already, and the Pod that asks

Each pair lives on a node of its own, which only its Pod's nodeSelector matches; so the verdict on the Pod is
the verdict on the pair. off: how an object looks to a planner that doesn't know the rule.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
NIC: Final = "example.com/nic"
RUNTIME: Final = "parity-overhead"  # a RuntimeClass whose Pods cost a CPU more
OVERHEAD: Final = {"cpu": "1"}
_ZONES: Final = ("a", "b", "c")


@dataclass(slots=True)
class Pair:
    """residents: requests of Pods that are on the node already, each with these ports and this affinity.

    pod_labels, resident_labels: of the asker and of each resident.
    """

    allocatable: Json = field(default_factory=lambda: {"cpu": "8", "memory": "16Gi", GPU: "4"})
    labels: Json = field(default_factory=dict)
    node_spec: Json = field(default_factory=dict)
    residents: list[Json] = field(default_factory=list)
    pod_spec: Json = field(default_factory=dict)
    ports: list[Json] = field(default_factory=list)
    resident_affinity: Json = field(default_factory=dict)
    resident_labels: Json = field(default_factory=dict)
    pod_labels: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """make: a pair. off: (node, Pod) without what the rule is about."""

    make: Callable[[random.Random], Pair]
    off: Callable[[Json, Json], None]


def containers(*requests: Json) -> list[Json]:
    image = "registry.invalid/worker:1"
    return [
        {"name": f"c{i}", "image": image, "resources": {"requests": asked, "limits": _limits(asked)}}
        for i, asked in enumerate(requests)
    ]


def _limits(asked: Json) -> Json:
    """Extended resources need limits that equal their requests."""
    return {name: value for name, value in asked.items() if "/" in name}


def _asking(**more: Any) -> Json:
    return {"containers": containers({"cpu": "1"}), **more}


def _resources(rng: random.Random) -> Pair:
    """Sums over containers and residents, close to what there is."""
    parts = [{"cpu": f"{rng.randint(1, 5)}", "memory": f"{rng.randint(1, 9)}Gi"} for _ in range(2)]
    resident = {"cpu": f"{rng.randint(0, 3)}", "memory": f"{rng.randint(1, 4)}Gi"}
    return Pair(residents=[resident], pod_spec={"containers": containers(*parts)})


def _extended(rng: random.Random) -> Pair:
    name = rng.choice((GPU, NIC))
    resident = {GPU: f"{rng.randint(1, 2)}"}
    return Pair(
        allocatable={"cpu": "8", "memory": "16Gi", GPU: "4", NIC: "2"},
        residents=[resident],
        pod_spec={"containers": containers({name: f"{rng.randint(1, 4)}"})},
    )


def _ephemeral(rng: random.Random) -> Pair:
    asked = {"ephemeral-storage": f"{rng.randint(1, 10)}Gi"}
    return Pair(
        allocatable={"cpu": "8", "memory": "16Gi", "ephemeral-storage": "10Gi"},
        residents=[{"ephemeral-storage": f"{rng.randint(1, 9)}Gi"}],
        pod_spec={"containers": containers(asked)},
    )


def _places(rng: random.Random) -> Pair:
    residents: list[Json] = [{"cpu": "10m"} for _ in range(rng.randint(1, 4))]
    return Pair(
        allocatable={"cpu": "8", "memory": "16Gi", "pods": "3"}, residents=residents, pod_spec=_asking()
    )


def _init(rng: random.Random) -> Pair:
    """An init container needs more than all that runs later."""
    peak = containers({"cpu": f"{rng.randint(3, 13)}"})
    return Pair(pod_spec=_asking(initContainers=[{**peak[0], "name": "init"}]))


def _sidecar(rng: random.Random) -> Pair:
    """A restartable init container stays beside the others."""
    first = containers({"cpu": f"{rng.randint(3, 11)}"})[0]
    sidecar = {**first, "name": "sidecar", "restartPolicy": "Always"}
    return Pair(pod_spec={"containers": containers({"cpu": "2"}), "initContainers": [sidecar]})


def _overhead(rng: random.Random) -> Pair:
    asked = containers({"cpu": rng.choice(("6", "7", "7500m", "8"))})
    return Pair(pod_spec={"containers": asked, "runtimeClassName": RUNTIME})


def _pod_level(rng: random.Random) -> Pair:
    level = {"requests": {"cpu": f"{rng.randint(4, 12)}"}}
    return Pair(pod_spec={"containers": containers({"cpu": "2"}), "resources": level})


def _selector(rng: random.Random) -> Pair:
    return Pair(
        labels={"zone": rng.choice(_ZONES[:2])},
        pod_spec=_asking(nodeSelector={"zone": rng.choice(_ZONES[:2])}),
    )


def _affinity(operator: str) -> Callable[[random.Random], Pair]:
    def make(rng: random.Random) -> Pair:
        labels = {"zone": rng.choice(_ZONES)} if rng.random() < 0.6 else {}
        values: list[str] = [] if "Exist" in operator else rng.sample(_ZONES, 2)
        if operator in ("Gt", "Lt"):
            labels = {"zone": rng.choice(("1", "5", "9")) if rng.random() < 0.9 else "ten"}
            values = [rng.choice(("4", "6"))]
        term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
        return Pair(labels=labels, pod_spec=_asking(affinity=_required(term)))

    return make


def _field(rng: random.Random) -> Pair:
    """metadata.name is the only field; "this" becomes the node's name."""
    operator = rng.choice(("In", "NotIn"))
    row = {"key": "metadata.name", "operator": operator, "values": [rng.choice(("this", "another"))]}
    return Pair(pod_spec=_asking(affinity=_required({"matchFields": [row]})))


def _required(term: Json) -> Json:
    terms = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _taints(rng: random.Random) -> Pair:
    effect = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    taint = {"key": rng.choice(("gpu", "team")), "value": rng.choice(("x", "y")), "effect": effect}
    toleration = rng.choice(
        (
            {"operator": "Exists"},
            {"key": "gpu", "operator": "Exists"},
            {"key": "gpu", "operator": "Equal", "value": "x"},
            {"key": "team", "value": "y", "effect": "NoSchedule"},
            {"key": "team", "operator": "Exists", "effect": "NoExecute"},
        )
    )
    return Pair(node_spec={"taints": [taint]}, pod_spec=_asking(tolerations=[toleration]))


def _ports(rng: random.Random) -> Pair:
    """Addresses collide where they are the same, or where one of them is any."""
    resident, asker = [
        {
            "containerPort": 80,
            "hostPort": 8080 if rng.random() < 0.9 else 8081,
            "protocol": "TCP" if rng.random() < 0.9 else "UDP",
            "hostIP": rng.choice(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
        }
        for _ in range(2)
    ]
    container = {**containers({"cpu": "1"})[0], "ports": [asker]}
    return Pair(residents=[{"cpu": "1"}], ports=[resident], pod_spec={"containers": [container]})


def _one_a_node(rng: random.Random) -> Pair:
    """Equals that exclude each other; others have another label, and other terms."""
    labels: list[Json] = [{"app": rng.choice(("a", "b"))} for _ in range(2)]
    affinity: list[Json] = [_apart_from(row["app"]) for row in labels]
    return Pair(
        residents=[{"cpu": "1"}] if rng.random() < 0.9 else [],
        resident_labels=labels[0],
        resident_affinity=affinity[0],
        pod_labels=labels[1],
        pod_spec=_asking(affinity=affinity[1]),
    )


def _apart_from(app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _cordon(rng: random.Random) -> Pair:
    key = "node.kubernetes.io/unschedulable"
    tolerations = [{"key": key, "operator": "Exists"}] if rng.random() < 0.5 else []
    return Pair(node_spec={"unschedulable": rng.random() < 0.7}, pod_spec=_asking(tolerations=tolerations))


def _without(*path: str) -> Callable[[Json, Json], None]:
    """The Pod has no such field."""

    def off(_: Json, pod: Json) -> None:
        holder = pod
        for part in path[:-1]:
            holder = holder.get(part) or {}
        holder.pop(path[-1], None)

    return off


def _boundless(*names: str) -> Callable[[Json, Json], None]:
    """The node has any amount of these."""

    def off(node: Json, _: Json) -> None:
        for name in names:
            node["status"]["allocatable"][name] = str(10**12)

    return off


def _no_selector(_: Json, pod: Json) -> None:
    pod["spec"]["nodeSelector"].pop("zone", None)


def _no_taints(node: Json, _: Json) -> None:
    node["spec"].pop("taints", None)


def _no_cordon(node: Json, _: Json) -> None:
    node["spec"].pop("taints", None)
    node["spec"].pop("unschedulable", None)


def _plain_init(_: Json, pod: Json) -> None:
    """As if a restartable init container ended before the others begin."""
    for row in pod["spec"]["initContainers"]:
        row.pop("restartPolicy", None)


def _no_ports(_: Json, pod: Json) -> None:
    for container in pod["spec"]["containers"]:
        container.pop("ports", None)


_AFFINITY: Final = _without("spec", "affinity")

RULES: Final[dict[str, Rule]] = {
    "resources": Rule(_resources, _boundless("cpu", "memory")),
    "extended resources": Rule(_extended, _boundless(GPU, NIC)),
    "ephemeral storage": Rule(_ephemeral, _boundless("ephemeral-storage")),
    "Pod places": Rule(_places, _boundless("pods")),
    "init containers": Rule(_init, _without("spec", "initContainers")),
    "sidecars": Rule(_sidecar, _plain_init),
    "overhead": Rule(_overhead, _without("spec", "overhead")),
    "Pod-level resources": Rule(_pod_level, _without("spec", "resources")),
    "nodeSelector": Rule(_selector, _no_selector),
    **{
        f"affinity {operator}": Rule(_affinity(operator), _AFFINITY)
        for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    },
    "matchFields": Rule(_field, _AFFINITY),
    "taints": Rule(_taints, _no_taints),
    "host ports": Rule(_ports, _no_ports),
    "one Pod a node": Rule(_one_a_node, _AFFINITY),
    "unschedulable": Rule(_cordon, _no_cordon),
}


def switched_off(rule: Rule, node: Json, pod: Json) -> tuple[Json, Json]:
    """The objects as a planner without the rule would read them."""
    node, pod = deepcopy(node), deepcopy(pod)
    rule.off(node, pod)
    return node, pod
