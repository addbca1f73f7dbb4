"""A member whose volume is bound, or is being made, goes where the volume is; its gang goes with it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from extender import wire
from gangs.pods import Pod
from tests.builders import Json, make_node, make_pod, pod_object
from tests.extender.world import World, gang

SELECTED = "volume.kubernetes.io/selected-node"


def claim_object(name: str = "weights", *, volume: str = "", selected: str = "", uid: str = "") -> Json:
    annotations = {SELECTED: selected} if selected else {}
    meta = {"uid": uid or f"u-{name}", "namespace": "default", "name": name, "annotations": annotations}
    return {"metadata": meta, "spec": {"volumeName": volume} if volume else {}}


def volume_object(name: str, *nodes: str) -> Json:
    rows = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": rows}]}
    spec = {"nodeAffinity": {"required": terms}} if nodes else {}
    return {"metadata": {"uid": f"u-{name}", "name": name}, "spec": spec}


def claiming(pods: Iterable[Pod]) -> list[Pod]:
    first, *others = pods
    return [replace(first, claims=("weights",)), *others]


def waiting_world() -> World:
    """Clique b would be chosen: it is the smaller one that fits."""
    return World({"a": 6, "b": 4})


def test_a_node_chosen_for_a_volume_decides_the_clique_of_the_whole_gang() -> None:
    world = waiting_world()
    world.volumes.claims.put(claim_object(selected="a5"))
    world.board(*claiming(gang(4)))
    (grant,) = world.written.grants
    assert (grant.domain, grant.seats["llm-0"]) == (("a",), "a5")


def test_a_bound_volume_is_followed_to_the_nodes_that_reach_it() -> None:
    world = waiting_world()
    world.volumes.volumes.put(volume_object("pv-1", "a2", "a3"))
    world.volumes.claims.put(claim_object(volume="pv-1", selected="b0"))  # bound: the annotation is history
    world.board(*claiming(gang(4)))
    (grant,) = world.written.grants
    assert grant.domain == ("a",)
    assert grant.seats["llm-0"] in ("a2", "a3")


def test_a_volume_that_every_node_reaches_ties_nobody() -> None:
    world = waiting_world()
    world.volumes.volumes.put(volume_object("pv-1"))
    world.volumes.claims.put(claim_object(volume="pv-1"))
    pods = claiming(gang(4))
    assert world.shapes(pods[0]) is pods[0].shape
    world.board(*pods)
    assert world.written.grants[0].domain == ("b",)


def test_a_gang_tied_to_a_node_without_room_waits_and_says_which() -> None:
    world = waiting_world()
    world.volumes.claims.put(claim_object(selected="a5"))
    world.nodes.update(make_node("a5", "a", cordoned=True))
    world.board(*claiming(gang(4)))
    assert world.written.grants == []
    sentence = world.news.sentence(world.rounds.pending["default", "llm"])
    assert " llm-0 is tied by a volume or claim to a5 (a5: cordoned)." in sentence


def test_the_gang_goes_where_it_likes_once_the_provisioner_takes_its_node_back() -> None:
    world = waiting_world()
    world.volumes.claims.put(claim_object(selected="gone"))
    world.board(*claiming(gang(4)))
    assert world.written.grants == []
    world.volumes.claims.put(claim_object())
    world.round()
    assert world.written.grants[0].domain == ("b",)


def test_a_claim_made_anew_under_the_same_name_ties_nobody() -> None:
    world = waiting_world()
    world.volumes.claims.put(claim_object(selected="gone", uid="old"))
    world.volumes.claims.put(claim_object(selected="a1", uid="new"))
    world.volumes.claims.drop("old")
    world.board(*claiming(gang(4)))
    assert world.written.grants[0].seats["llm-0"] == "a1"
    world.volumes.claims.drop("new")
    pod = claiming(gang(1))[0]
    assert world.shapes(pod) is pod.shape


def test_a_deleted_volume_is_forgotten() -> None:
    world = World()
    volumes, shapes = world.volumes, world.shapes
    volumes.volumes.put(volume_object("pv-1", "a2"))
    volumes.claims.put(claim_object(volume="pv-1"))
    pod = make_pod(claims=("weights",))
    assert shapes(pod) is not pod.shape
    volumes.volumes.drop("u-pv-1")
    assert shapes(pod) is pod.shape


def test_equal_pods_with_equal_volumes_share_one_shape() -> None:
    world = World()
    volumes, shapes = world.volumes, world.shapes
    volumes.claims.put(claim_object(selected="a0"))
    pods = [make_pod(f"llm-{i}", claims=("weights",)) for i in range(2)]
    assert shapes(pods[0]) is shapes(pods[1])


def test_only_gangs_with_the_claim_are_planned_anew() -> None:
    world = waiting_world()
    world.update(*claiming(gang(2)), *gang(2, "other"))
    world.registry.changed.clear()
    world.volumes.claims.put(claim_object(selected="a0"))
    world.volumes.claims.put(claim_object(selected="a0"))
    assert world.registry.changed == {("default", "llm")}


def test_claims_are_read_from_volumes_and_ephemeral_ones_get_their_names() -> None:
    volumes: list[dict[str, Any]] = [
        {"name": "w", "persistentVolumeClaim": {"claimName": "weights"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "config", "configMap": {}},
    ]
    assert wire.pod(pod_object("llm-0", spec={"volumes": volumes})).claims == ("weights", "llm-0-scratch")
