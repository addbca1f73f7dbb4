"""The API server may show us our own output again; then nothing is left to do."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gangs import contract
from tests.webhook.world import (
    BATCH_MIN,
    CLIQUE,
    HOSTNAME,
    MNNVL,
    PREFERRED,
    PREFERRED_LEVEL,
    REQUIRED,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    namespace,
    operations,
    patched,
    pod,
    workload,
)

_LEVELS = [CLIQUE, HOSTNAME, "nvidia.com/clique", "no key"]
_NUMBERS = ["1", "2", "4", "9", "0", "many"]
_ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        TOPOLOGY: st.sampled_from(["nvcf-mnnvl-topology", "rack"]),
        REQUIRED_LEVEL: st.sampled_from(_LEVELS),
        PREFERRED_LEVEL: st.sampled_from(_LEVELS),
        BATCH_MIN: st.sampled_from(_NUMBERS),
        contract.NVCF_INDEX: st.sampled_from(["", "0"]),
        contract.ANNOTATION_MIN_MEMBER: st.sampled_from(_NUMBERS),
        contract.ANNOTATION_SIZE: st.sampled_from(_NUMBERS),
        contract.ANNOTATION_TOPOLOGY_REQUIRED: st.sampled_from([*_LEVELS, f"{CLIQUE},no key"]),
        contract.ANNOTATION_TOPOLOGY_PREFERRED: st.sampled_from(_LEVELS),
        contract.ANNOTATION_PLAN: st.just("{}"),
        contract.ANNOTATION_NOTES: st.sampled_from(["", "text", '[{"message": "m"}]']),
    },
)
_LABELS = st.fixed_dictionaries(
    {},
    optional={
        contract.LABEL_GANG: st.just("mine"),
        contract.LABEL_SUBGROUP: st.just("decode"),
        contract.LABEL_QUEUE: st.just("team-a"),
        contract.NVCF_PARTITION: st.just("xtakenx"),
    },
)
_NAMESPACES = st.fixed_dictionaries(
    {},
    optional={
        contract.LABEL_ENABLED: st.just("true"),
        contract.NVCF_INSTANCE_TYPE: st.just("miniservice"),
    },
)
_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
_AFFINITIES = st.sampled_from(
    [
        None,
        {},
        {"podAffinity": {REQUIRED: [_TERM], PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, {"matchFields": [{"key": "f"}]}]}}},
    ]
)
_SPECS: dict[str, list[Json]] = {
    "StatefulSet": [{"replicas": 4}, {"replicas": 4, "podManagementPolicy": "Parallel"}, {"replicas": 0}],
    "Deployment": [{"replicas": 4}],
    "Job": [{"parallelism": 4, "completions": 2}, {"parallelism": 4}],
}


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Json, World]:
    kind = draw(st.sampled_from([*_SPECS, "bare"]))
    objects = [MNNVL, namespace(**draw(_NAMESPACES))]
    owner = None
    if kind != "bare":
        owner = workload(kind, "o", draw(_ANNOTATIONS), **draw(st.sampled_from(_SPECS[kind])))
        objects.append(owner)
    obj = pod(owner, draw(st.none() | _ANNOTATIONS), draw(st.none() | _LABELS))
    if (affinity := draw(_AFFINITIES)) is not None:
        obj["spec"]["affinity"] = affinity
    if draw(st.booleans()):
        obj["spec"]["schedulingGates"] = [{"name": "example.com/mine"}]
    return obj, World(*objects)


@settings(max_examples=400, deadline=None)
@given(scenes())
async def test_our_own_output_is_changed_no_more(scene: tuple[Json, World]) -> None:
    obj, world = scene
    once = patched(obj, await operations(obj, world))
    assert await operations(once, world) == []


@settings(max_examples=200, deadline=None)
@given(scenes())
async def test_nothing_that_the_pod_brought_along_is_lost_but_our_reserved_words(
    scene: tuple[Json, World],
) -> None:
    obj, world = scene
    stored = patched(obj, await operations(obj, world))
    assert stored["spec"]["containers"] == obj["spec"]["containers"]
    for kind in ("labels", "annotations"):
        gone = set(obj["metadata"].get(kind) or {}) - set(stored["metadata"].get(kind) or {})
        assert gone <= {contract.ANNOTATION_PLAN, contract.ANNOTATION_NOTES}
    gates = obj["spec"].get("schedulingGates", [])
    assert stored["spec"].get("schedulingGates", [])[: len(gates)] == gates
