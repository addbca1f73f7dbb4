"""Groups by name: coscheduling, lightweight labels, Koordinator, Volcano."""

import orjson
import pytest

from gangs import contract
from tests.webhook.world import (
    CLIQUE,
    HOSTNAME,
    MNNVL,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    admit,
    annotations,
    counts,
    gates,
    labels,
    notes,
    operations,
    parallel,
    pod,
    pod_terms,
    with_gang,
)
from webhook.mutate import UndecidedError

COSCHEDULING = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/train"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/train"
IN_GROUP = {contract.COSCHEDULING_GROUP: "train"}


def world(path: str = "", minimum: object = 3) -> World:
    made = World(MNNVL)
    if path:
        made.objects[path] = {"kind": "PodGroup", "spec": {"minMember": minimum}}
    return made


@pytest.mark.parametrize(
    ("member", "path"),
    [
        (pod(labels=IN_GROUP), COSCHEDULING),
        (pod(labels={contract.LIGHTWEIGHT_GROUP: "train", contract.LIGHTWEIGHT_MIN: "3"}), ""),
        (pod(annotations={contract.KOORDINATOR_GROUP: "train", contract.KOORDINATOR_MIN: "3"}), ""),
        (pod(annotations={contract.VOLCANO_GROUP: "train"}), VOLCANO),
    ],
    ids=["coscheduling", "lightweight", "koordinator", "volcano"],
)
async def test_a_group_gives_gang_name_and_floor(member: Json, path: str) -> None:
    stored = await admit(member, world(path))
    assert labels(stored)[contract.LABEL_GANG].startswith("train-")
    assert counts(stored) == ("3", "3", None)
    assert gates(stored) == [contract.GATE]
    assert notes(stored) == []
    assert await operations(stored, world(path)) == []


async def test_members_of_several_owners_with_one_group_are_one_gang() -> None:
    one, other = parallel("one"), parallel("other")
    stored = [await admit(pod(owner, labels=IN_GROUP), world(COSCHEDULING)) for owner in (one, other)]
    assert labels(stored[0])[contract.LABEL_GANG] == labels(stored[1])[contract.LABEL_GANG]


async def test_a_group_may_carry_our_topology_annotation() -> None:
    level = {contract.ANNOTATION_TOPOLOGY_REQUIRED: CLIQUE}
    stored = await admit(pod(annotations=level, labels=IN_GROUP), world(COSCHEDULING))
    assert pod_terms(stored) == [with_gang(labels(stored)[contract.LABEL_GANG])]


async def test_a_group_that_is_not_there_blocks_since_its_floor_is_not_known() -> None:
    [(message, blocking)] = notes(await admit(pod(labels=IN_GROUP), world()))
    assert blocking
    assert message.startswith(f'pod default/solo: label {contract.COSCHEDULING_GROUP}: no PodGroup "train"')


@pytest.mark.parametrize("minimum", [0, -1, "many", None])
async def test_a_floor_that_is_no_number_blocks_and_names_object_and_field(minimum: object) -> None:
    [(message, blocking)] = notes(await admit(pod(labels=IN_GROUP), world(COSCHEDULING, minimum)))
    assert blocking
    assert message.startswith(f'podgroup default/train: spec.minMember: "{minimum}" is no number')


async def test_a_group_that_can_not_be_read_just_now_is_not_guessed() -> None:
    failing = world()
    failing.broken = ("podgroups",)
    with pytest.raises(UndecidedError, match="podgroup train could not be read"):
        await admit(pod(labels=IN_GROUP), failing)


async def test_a_group_that_we_may_not_read_blocks_and_says_why() -> None:
    failing = world()
    failing.forbidden = ("podgroups",)
    said = notes(await admit(pod(labels=IN_GROUP), failing))
    assert any("podgroup train could not be read (forbidden)" in message for message, _ in said)
    assert any(blocking for _, blocking in said)


async def test_kai_decides_beside_a_group_and_a_note_says_so() -> None:
    keys = {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE}
    llm = parallel("llm", keys, replicas=4)
    kai = World(MNNVL, llm)
    stored = await admit(pod(llm, labels=IN_GROUP), kai)
    assert counts(stored) == ("4", "4", "owner")
    assert [message for message, _ in notes(stored) if contract.COSCHEDULING_GROUP in message] != []


async def test_pods_of_another_scheduler_stay_as_they_are() -> None:
    member = pod(labels=IN_GROUP, schedulerName="scheduler-plugins-scheduler")
    assert annotations(await admit(member, world(COSCHEDULING))) == annotations(member)


async def test_a_group_name_that_leads_elsewhere_is_never_looked_up() -> None:
    around = world()
    stored = await admit(pod(annotations={contract.VOLCANO_GROUP: "../../secrets/key"}), around)
    assert [call for call in around.calls if "secrets" in call or "podgroups" in call] == []
    assert [blocking for _, blocking in notes(stored)] == [True]


class TestPodGroupOfKai:
    """What a user has written for KAI with its pod-grouper switched off."""

    PATH = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups/pg"

    def around(self, **spec: object) -> World:
        made = World(MNNVL)
        made.objects[self.PATH] = {"kind": "PodGroup", "spec": spec}
        return made

    def member(self, scheduler: str = "kai-scheduler") -> Json:
        return pod(annotations={contract.KAI_POD_GROUP: "pg"}, schedulerName=scheduler)

    async def test_its_spec_gives_floor_and_domain(self) -> None:
        constraint = {"topology": "nvcf-mnnvl-topology", "requiredTopologyLevel": CLIQUE}
        world = self.around(minMember=4, topologyConstraint=constraint)
        stored = await admit(self.member(), world)
        assert counts(stored) == ("4", "4", None)
        assert pod_terms(stored) == [with_gang(labels(stored)[contract.LABEL_GANG])]
        assert notes(stored) == []
        assert await operations(stored, world) == []

    TREE = (
        {
            "name": "replica",
            "minSubGroup": 2,
            "topologyConstraint": {
                "topology": "nvcf-mnnvl-topology",
                "requiredTopologyLevel": CLIQUE,
                "preferredTopologyLevel": HOSTNAME,
            },
        },
        {"name": "leader", "parent": "replica", "minMember": 1},
        {"name": "workers", "parent": "replica", "minMember": 3},
        {"name": "router", "minMember": 1},
    )

    def part(self, name: str) -> Json:
        return pod(
            annotations={contract.KAI_POD_GROUP: "pg"},
            labels={contract.KAI_SUBGROUP: name} if name else {},
            schedulerName="kai-scheduler",
        )

    async def test_subgroups_have_floors_and_domains_of_their_own(self) -> None:
        world = self.around(minMember=5, queue="team-a", subGroups=list(self.TREE))
        stored = await admit(self.part("workers"), world)
        assert counts(stored)[0] == "5"
        assert notes(stored) == []
        said = annotations(stored)
        assert said[contract.ANNOTATION_MIN_SUBGROUP] == "2"
        assert orjson.loads(said[contract.ANNOTATION_SUBGROUPS]) == [
            {"name": "replica", "minSubGroup": 2, "required": CLIQUE, "preferred": HOSTNAME},
            {"name": "workers", "minMember": 3},
        ]
        among = {"key": contract.LABEL_SUBGROUP, "operator": "In", "values": ["leader", "workers"]}
        assert pod_terms(stored)[0]["labelSelector"]["matchExpressions"] == [among]
        assert labels(stored)[contract.LABEL_QUEUE] == "team-a"
        assert await operations(stored, world) == []

    async def test_subgroups_add_up_to_the_floor_and_some_may_be_enough(self) -> None:
        rows = [{"name": name, "minMember": 2} for name in ("a", "b", "c")]
        assert counts(await admit(self.part("a"), self.around(subGroups=rows)))[0] == "6"
        some = await admit(self.part("a"), self.around(subGroups=rows, minSubGroup=2))
        assert annotations(some)[contract.ANNOTATION_MIN_SUBGROUP] == "2"
        assert counts(some)[0] == "1"

    @pytest.mark.parametrize("name", ["", "other"])
    async def test_a_pod_of_no_subgroup_that_there_is_waits_and_is_told_which_there_are(
        self, name: str
    ) -> None:
        [(message, blocking)] = notes(await admit(self.part(name), self.around(subGroups=list(self.TREE))))
        assert blocking
        assert f'label kai.scheduler/subgroup-name: "{name}" is no subgroup of podgroup default/pg' in message
        assert "(subgroups: replica, leader, workers, router)" in message

    async def test_parents_in_a_circle_are_no_reason_to_fail(self) -> None:
        rows = [{"name": "a", "parent": "b", "minMember": 1}, {"name": "b", "parent": "a"}]
        assert contract.GATE in gates(await admit(self.part("a"), self.around(subGroups=rows)))

    @pytest.mark.parametrize("queue", ["", "no queue", "q" * 64, "-"])
    async def test_a_queue_that_can_be_no_label_is_not_taken(self, queue: str) -> None:
        stored = await admit(self.member(), self.around(minMember=2, queue=queue))
        assert labels(stored)[contract.LABEL_QUEUE] == contract.DEFAULT_QUEUE

    async def test_its_priority_class_reaches_the_pod_where_it_exists(self) -> None:
        world = self.around(minMember=2, priorityClassName="train")
        assert "priorityClassName" not in (await admit(self.member(), world))["spec"]
        world = self.around(minMember=2, priorityClassName="train")
        world.objects["/apis/scheduling.k8s.io/v1/priorityclasses/train"] = {"value": 50}
        assert (await admit(self.member(), world))["spec"]["priorityClassName"] == "train"

    async def test_a_group_that_is_not_there_blocks(self) -> None:
        [(message, blocking)] = notes(await admit(self.member(), World(MNNVL)))
        assert blocking
        assert 'no PodGroup "pg" of scheduling.run.ai/v2alpha2' in message

    async def test_the_key_means_nothing_on_pods_that_name_no_scheduler_of_ours(self) -> None:
        member = self.member("default-scheduler")
        assert await admit(member, self.around(minMember=4)) == member


async def test_dynamos_worker_sets_made_for_volcano_are_gangs_where_that_name_is_served() -> None:
    labels_of_set = {
        contract.LWS_NAME: "decode-0",
        contract.LWS_GROUP_INDEX: "0",
        "nvidia.com/dynamo-graph-deployment-name": "dgd",
        "instance-id": "0",
    }
    keys = {contract.LWS_SIZE: "3", contract.VOLCANO_GROUP: "train"}
    member = pod(parallel("decode-0"), keys, labels_of_set, schedulerName="volcano")
    assert await operations(member, world(VOLCANO)) == []
    stored = await admit(member, world(VOLCANO), ("allaboard", "volcano"))
    assert counts(stored) == ("3", "3", None)
    assert labels(stored)[contract.LABEL_GANG].startswith("train-")
    assert stored["spec"]["schedulerName"] == "volcano"
