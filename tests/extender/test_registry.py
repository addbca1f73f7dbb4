"""Which Pods make which gang, and when the last news of it came."""

from dataclasses import replace

from extender.cluster import OwnerKind
from extender.owners import Owners
from extender.registry import Registry
from gangs.contract import SIZE_FROM_OWNER
from gangs.notes import Note
from gangs.pods import Demand
from tests.builders import KEY, Json, make_loose, make_members, make_owner, make_pod
from tests.extender.world import Clock


def a_registry(*pods: object, now: float = 1.0) -> Registry:
    registry = Registry(Owners())
    for pod in pods:
        registry.put(pod, now)  # type: ignore[arg-type]
    return registry


def test_pods_with_one_label_in_one_namespace_are_one_gang() -> None:
    elsewhere = make_pod("x", namespace="other")
    registry = a_registry(*make_members(2), make_pod("y", gang="second"), elsewhere, make_loose("z"))
    assert set(registry.keys) == {KEY, ("default", "second"), ("other", "llm")}
    assert {p.name for p in registry.members(KEY)} == {"llm-0", "llm-1"}


def test_members_are_counted_by_uid_not_by_name() -> None:
    old = make_pod("llm-0", uid="1", terminating=True)
    registry = a_registry(old, make_pod("llm-0", uid="2"))
    assert len(list(registry.members(KEY))) == 2
    gang = registry.muster(KEY)
    assert gang is not None
    assert [p.uid for p in gang.everyone] == ["2"]


def test_a_gang_whose_last_pod_is_gone_is_gone() -> None:
    registry = a_registry(*make_members(1))
    registry.changed.clear()
    gone = registry.drop("u-llm-0")
    assert gone is not None
    assert list(registry.keys) == []
    assert registry.muster(KEY) is None
    assert registry.changed == {KEY}
    assert registry.drop("u-llm-0") is None


def test_a_relabelled_pod_changes_both_gangs() -> None:
    registry = a_registry(*make_members(2))
    registry.changed.clear()
    registry.put(make_pod("llm-0", gang="other"), 2.0)
    assert registry.changed == {KEY, ("default", "other")}
    assert {p.name for p in registry.members(KEY)} == {"llm-1"}


def test_news_of_a_gang_is_a_new_member_not_a_changed_one() -> None:
    registry = a_registry(*make_members(1), now=1.0)
    registry.put(make_pod("llm-1"), 5.0)
    registry.put(replace(registry.pods["u-llm-0"], nominated="a0"), 9.0)
    assert registry.quiet_since(KEY) == (1.0, 5.0)
    assert registry.quiet_since(("default", "unknown")) == (0.0, 0.0)


def test_a_pod_with_notes_is_remembered_once_and_only_while_unbound() -> None:
    noted = make_pod(demand=Demand(notes=(Note("hello"),)))
    registry = a_registry(noted, noted, replace(noted, uid="bound", node="a0"), make_pod("plain"))
    assert registry.noted == [noted]


def test_an_owner_that_is_scaled_changes_the_gangs_of_its_namespace() -> None:
    owners, clock, woken = Owners(), Clock(), []
    registry = Registry(owners)
    pod = make_pod(demand=Demand(4, 4, SIZE_FROM_OWNER), owner=make_owner())
    registry.put(pod, clock())
    registry.put(make_pod("x", namespace="other"), clock())
    kind = OwnerKind("StatefulSet", owners, registry, clock, lambda: woken.append(1))
    obj: Json = {
        "metadata": {"uid": "u-StatefulSet-llm", "namespace": "default"},
        "spec": {"replicas": 6, "template": {}},
    }
    registry.changed.clear()
    clock.advance(3)
    kind.put(obj)
    assert registry.changed == {KEY}
    gang = registry.muster(KEY)
    assert gang is not None
    assert (gang.floor, gang.size) == (6, 6)
    assert registry.quiet_since(KEY)[1] == clock()

    kind.put(obj)
    assert len(woken) == 1
    kind.drop("u-StatefulSet-llm")
    kind.drop("u-StatefulSet-llm")
    assert len(woken) == 2
    gang = registry.muster(KEY)
    assert gang is not None
    assert gang.floor == 4
