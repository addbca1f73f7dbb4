"""NVCF's legacy partitions: label and affinity to the byte as NVCA writes them."""

import pytest

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
    MNNVL,
    PREFERRED,
    REQUIRED,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    admit,
    annotations,
    counts,
    exists,
    gates,
    labels,
    namespace,
    node_terms,
    notes,
    operations,
    parallel,
    pod,
    pod_terms,
    with_gang,
    workload,
)
from webhook.dialects.nvcf import partition_key

NS = "ms-abc123"
FUNCTION = namespace(NS, **{contract.NVCF_INSTANCE_TYPE: "miniservice"})
PARTITION_0 = {contract.NVCF_INDEX: "0"}
KEY = "x16989cf0cc8364fa9ex"
KEY_0 = "x528b9341e0d50f6ea5x"


def term(key: str) -> Json:
    return {
        "labelSelector": {
            "matchExpressions": [
                {"key": "dra.nvcf.nvidia.io/nvlink-domain-partition", "operator": "Exists"},
                {"key": "dra.nvcf.nvidia.io/nvlink-domain-partition", "operator": "In", "values": [key]},
            ]
        },
        "topologyKey": "nvidia.com/gpu.clique",
    }


@pytest.mark.parametrize(
    ("space", "index", "expected"),
    [
        (NS, "", KEY),
        (NS, "0", KEY_0),
        (NS, "1", "x65f7cd8166363f270ex"),
        ("foo", "", "x2c26b46b68ffc68ff9x"),
        ("foo1", "", "xbb4eca334f61af3b67x"),
    ],
)
def test_the_partition_label_is_nvcas(space: str, index: str, expected: str) -> None:
    assert partition_key(space, index) == expected


async def test_an_annotated_pod_is_tied_to_its_partition_and_waits_for_it() -> None:
    part = parallel("part-0", namespace=NS, replicas=4)
    stored = await admit(pod(part, PARTITION_0, namespace=NS), World(part, FUNCTION))
    assert labels(stored) == {
        contract.NVCF_PARTITION: KEY_0,
        contract.LABEL_GANG: KEY_0,
        contract.LABEL_QUEUE: "default-queue",
    }
    assert counts(stored) == ("4", "4", "nvcf-partition")
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
    assert pod_terms(stored) == [term(KEY_0)]
    assert node_terms(stored) == [{"matchExpressions": [exists(CLIQUE)]}]
    assert gates(stored) == [contract.GATE]


async def test_a_pod_of_a_function_without_the_annotation_is_steered_and_waits_for_nobody() -> None:
    web = workload("Deployment", "helpers", namespace=NS, replicas=2)
    web_1 = workload("ReplicaSet", "helpers-1", namespace=NS, above=web, replicas=2)
    stored = await admit(pod(web_1, namespace=NS), World(web, web_1, FUNCTION))
    assert labels(stored)[contract.NVCF_PARTITION] == KEY
    assert counts(stored) == ("1", "2", None)
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_PREFERRED] == CLIQUE
    assert pod_terms(stored, PREFERRED) == [{"weight": 100, "podAffinityTerm": term(KEY)}]
    assert pod_terms(stored, REQUIRED) == []
    assert node_terms(stored) == [{"matchExpressions": [exists(CLIQUE)]}]


async def test_an_empty_annotation_counts_as_none() -> None:
    stored = await admit(pod(None, {contract.NVCF_INDEX: ""}, namespace=NS), World(FUNCTION))
    assert labels(stored)[contract.NVCF_PARTITION] == KEY


async def test_owners_with_the_same_value_share_a_gang_and_others_do_not() -> None:
    a, b = parallel("a", namespace=NS), parallel("b", namespace=NS)
    world = World(a, b, FUNCTION)
    one = labels(await admit(pod(a, PARTITION_0, namespace=NS), world))
    two = labels(await admit(pod(b, PARTITION_0, namespace=NS), world))
    other = labels(await admit(pod(b, {contract.NVCF_INDEX: "00"}, namespace=NS), world))
    assert one[contract.LABEL_GANG] == two[contract.LABEL_GANG] != other[contract.LABEL_GANG]


async def test_what_nvca_wrote_is_taken_over_and_not_doubled() -> None:
    part = parallel("part-0", namespace=NS)
    affinity = {
        "podAffinity": {REQUIRED: [term(KEY_0)]},
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "type", "operator": "In", "values": ["x2"]}]},
                    {"matchExpressions": [exists(CLIQUE)]},  # NVCA before its issue 1644 was fixed
                ]
            }
        },
    }
    seen = pod(part, PARTITION_0, {contract.NVCF_PARTITION: KEY_0}, namespace=NS, affinity=affinity)
    stored = await admit(seen, World(part, FUNCTION))
    assert pod_terms(stored) == [term(KEY_0)]
    assert node_terms(stored) == [
        {"matchExpressions": [{"key": "type", "operator": "In", "values": ["x2"]}, exists(CLIQUE)]},
        {"matchExpressions": [exists(CLIQUE)]},
    ]


async def test_a_partition_label_that_is_there_already_wins_over_ours() -> None:
    taken = {contract.NVCF_PARTITION: "xtakenx"}
    stored = await admit(pod(None, PARTITION_0, taken, namespace=NS), World(FUNCTION))
    assert labels(stored)[contract.NVCF_PARTITION] == "xtakenx"
    assert labels(stored)[contract.LABEL_GANG] == "xtakenx"
    assert pod_terms(stored) == [term("xtakenx")]


async def test_kai_on_the_owner_decides_the_gang_and_nvcfs_label_and_term_stay() -> None:
    both = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
    llm = parallel("llm", both, namespace=NS, replicas=3)
    stored = await admit(pod(llm, PARTITION_0, namespace=NS), World(MNNVL, llm, FUNCTION))
    gang = labels(stored)[contract.LABEL_GANG]
    assert gang.startswith("llm-")
    assert counts(stored) == ("3", "3", "owner")
    assert labels(stored)[contract.NVCF_PARTITION] == KEY_0
    assert pod_terms(stored) == [with_gang(gang), term(KEY_0)]
    [(message, blocking)] = notes(stored)
    assert message.startswith(f'pod {NS}/llm-0: annotation {contract.NVCF_INDEX}: "0"')
    assert not blocking


async def test_kai_on_the_owner_wins_over_an_unannotated_function() -> None:
    llm = parallel("llm", {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}, namespace=NS)
    stored = await admit(pod(llm, namespace=NS), World(MNNVL, llm, FUNCTION))
    assert contract.NVCF_PARTITION not in labels(stored)
    assert counts(stored) == ("4", "4", "owner")


async def test_an_unannotated_pod_elsewhere_is_left_as_it_is() -> None:
    part = parallel("part")
    assert await operations(pod(part), World(part)) == []
