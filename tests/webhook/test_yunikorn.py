"""YuniKorn's task groups are subgroups of one gang."""

import json
from typing import Any

import orjson
import pytest

from gangs import contract
from gangs.identity import is_label_value
from tests.webhook.world import (
    CLIQUE,
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
    workload,
)

GROUPS = [{"name": "head", "minMember": 1}, {"name": "worker", "minMember": 3, "minResource": {"cpu": "1"}}]


def member(name: str = "worker", groups: Any = GROUPS, owner: Json | None = None, **labels_: Any) -> Json:
    keys = {contract.YUNIKORN_GROUP: name, contract.ANNOTATION_TOPOLOGY_REQUIRED: CLIQUE}
    if groups is not None:
        keys[contract.YUNIKORN_GROUPS] = groups if isinstance(groups, str) else json.dumps(groups)
    return pod(owner, keys, labels_ or {contract.YUNIKORN_APP_LABEL: "app-1"})


async def test_each_task_group_boards_with_its_min_member_in_one_domain() -> None:
    stored = await admit(member())
    assert counts(stored) == ("4", "4", None)
    assert orjson.loads(annotations(stored)[contract.ANNOTATION_SUBGROUPS]) == [
        {"name": "worker", "minMember": 3}
    ]
    assert annotations(stored)[contract.ANNOTATION_MIN_SUBGROUP] == "2"
    assert annotations(stored)[contract.ANNOTATION_TOPOLOGY_REQUIRED] == CLIQUE
    assert gates(stored) == [contract.GATE]
    assert notes(stored) == []
    assert await operations(stored) == []


async def test_pods_of_one_application_are_one_gang_whoever_owns_them() -> None:
    one, other = parallel("one"), parallel("other")
    world = World(one, other)
    stored = [await admit(member("head", owner=one), world), await admit(member(owner=other), world)]
    assert len({labels(s)[contract.LABEL_GANG] for s in stored}) == 1


async def test_without_an_application_the_owner_makes_the_gang() -> None:
    train = workload("Job", "train", parallelism=4)
    stored = await admit(member(owner=train, app="x"), World(train))
    assert labels(stored)[contract.LABEL_GANG].startswith("train-")


@pytest.mark.parametrize(
    "groups",
    [None, "no JSON", [], [{"name": "head", "minMember": 1}], [{"name": "worker"}], [7], "[" * 9_999],
)
async def test_a_floor_that_cant_be_known_blocks_and_names_what_is_allowed(groups: Any) -> None:
    ((message, blocking),) = notes(await admit(member(groups=groups)))
    assert blocking
    assert "annotation yunikorn.apache.org/task-groups" in message
    assert '[{"name": "worker", "minMember": 2}]' in message


async def test_sparks_executors_are_waited_for_by_nobody() -> None:
    spark: dict[str, Any] = {contract.SPARK_APP: "spark-1", contract.YUNIKORN_APP_LABEL: "spark-1"}
    stored = await admit(member("spark-executor", None, **spark))
    assert counts(stored)[0] == "1"
    ((message, blocking),) = notes(stored)
    assert not blocking
    assert "the driver makes the executors" in message


async def test_a_task_group_whose_name_can_be_no_label_is_no_reason_to_refuse_the_pod() -> None:
    name = "workers of the first stage " * 4
    stored = await admit(member(name, [{"name": name, "minMember": 2}]))
    assert is_label_value(labels(stored)[contract.LABEL_SUBGROUP])
    assert orjson.loads(annotations(stored)[contract.ANNOTATION_SUBGROUPS])[0]["name"] == name
