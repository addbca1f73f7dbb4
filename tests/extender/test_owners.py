"""How many members an owner wants right now."""

from typing import Any

import pytest

from extender.owners import Owners, Wanted, wanted
from gangs.contract import NVCF_INDEX, SIZE_FROM_OWNER, SIZE_FROM_PARTITION
from gangs.pods import Demand, Pod
from tests.builders import Json, make_owner, make_pod

FOLLOWS_OWNER = Demand(4, 4, SIZE_FROM_OWNER)
FOLLOWS_PARTITION = Demand(4, 4, SIZE_FROM_PARTITION)


def owner_object(uid: str = "u-StatefulSet-llm", index: str = "", leaving: bool = False, **spec: Any) -> Json:
    meta: Json = {"uid": uid, "name": "llm", "namespace": "default"}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    template = {"metadata": {"annotations": {NVCF_INDEX: index}}} if index else {}
    return {"metadata": meta, "spec": {"template": template, **spec}}


def owned(demand: Demand = FOLLOWS_OWNER, **rest: Any) -> Pod:
    return make_pod(demand=demand, owner=make_owner(), **rest)


@pytest.mark.parametrize(
    ("kind", "spec", "succeeded", "members"),
    [
        ("StatefulSet", {"replicas": 4}, 0, 4),
        ("StatefulSet", {}, 0, 1),
        ("Deployment", {"replicas": 0}, 0, 0),
        ("Job", {"parallelism": 4}, 0, 4),
        ("Job", {}, 0, 1),
        ("Job", {"parallelism": 4, "completions": 10}, 0, 4),
        ("Job", {"parallelism": 4, "completions": 10}, 7, 3),
        ("Job", {"parallelism": 4, "completions": 10}, 10, 0),
        ("Job", {"parallelism": 4, "completions": 10, "suspend": True}, 0, 0),
    ],
)
def test_an_owner_wants_what_its_spec_and_progress_say(
    kind: str, spec: Json, succeeded: int, members: int
) -> None:
    obj = {**owner_object(**spec), "status": {"succeeded": succeeded} if succeeded else {}}
    assert wanted(kind, obj).members == members


def test_an_owner_that_is_being_deleted_wants_nobody() -> None:
    assert wanted("StatefulSet", owner_object(replicas=4, leaving=True)).members == 0


def test_the_partition_is_read_from_the_template() -> None:
    assert wanted("StatefulSet", owner_object(index="0", replicas=2)) == Wanted(
        "u-StatefulSet-llm", "default", 2, "0"
    )


class TestLiveSize:
    """The size of a gang that follows its owners."""

    def owners(self, *objects: Json) -> Owners:
        owners = Owners()
        for obj in objects:
            owners.put(wanted("StatefulSet", obj))
        return owners

    def test_it_is_what_the_controller_wants(self) -> None:
        owners = self.owners(owner_object(replicas=4))
        assert owners.live_size([owned()]) == 4
        owners.put(wanted("StatefulSet", owner_object(replicas=6)))
        assert owners.live_size([owned()]) == 6

    def test_the_annotations_rule_where_nothing_else_is_asked_or_known(self) -> None:
        owners = self.owners(owner_object(replicas=4))
        assert owners.live_size([owned(Demand(2, 2))]) is None
        assert owners.live_size([make_pod(demand=FOLLOWS_OWNER)]) is None
        assert Owners().live_size([owned()]) is None
        assert Owners().live_size([]) is None

    def test_the_newest_live_member_says_what_it_follows(self) -> None:
        owners = self.owners(owner_object(replicas=4))
        old, new = owned(Demand(2, 2), uid="old", created=1), owned(uid="new", created=2)
        finished = owned(Demand(2, 2), uid="finished", created=3, terminal=True)
        assert owners.live_size([old, new, finished]) == 4

    def test_a_partition_is_the_sum_of_all_owners_in_the_namespace_with_that_index(self) -> None:
        owners = self.owners(
            owner_object("1", "0", replicas=3),
            owner_object("2", "0", replicas=1),
            owner_object("3", "1", replicas=5),
            owner_object("4", replicas=7),
            owner_object("5", "0", replicas=9, leaving=True),
        )
        elsewhere = owner_object("6", "0", replicas=9)
        elsewhere["metadata"]["namespace"] = "other"
        owners.put(wanted("StatefulSet", elsewhere))
        assert owners.live_size([owned(FOLLOWS_PARTITION, partition_index="0")]) == 4
        assert owners.live_size([owned(FOLLOWS_PARTITION, partition_index="2")]) is None

    def test_it_is_told_whether_anything_changed(self) -> None:
        owners = Owners()
        first = wanted("StatefulSet", owner_object(replicas=4))
        assert owners.put(first)
        assert not owners.put(first)
        assert owners.drop(first.uid)
        assert not owners.drop(first.uid)
