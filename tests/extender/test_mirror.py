"""PodGroups: made for a gang and gone with it, adopted where they exist, and never written beside KAI."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from extender.api import ApiError
from extender.mirror import LIST_SECONDS, PER_LOOK, Mirror
from extender.news import SETTLED_SECONDS
from extender.views import Views
from gangs.identity import object_name
from gangs.pods import Pod
from tests.builders import Json, make_owner
from tests.extender.world import World, gang

ALL = "/apis/scheduling.run.ai/v2alpha2/podgroups"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
KAI = "/apis/apps/v1/namespaces/kai-scheduler/deployments"
NAME = "pg-llm-u-StatefulSet-llm"


class Server:
    """As much of an API server as PodGroups need."""

    def __init__(self) -> None:
        self.groups: dict[str, Json] = {}
        self.kai: list[str] = []
        self.writes = 0
        self.error: ApiError | None = None
        self._uid = 0

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        if path == KAI:
            return {"items": [{"metadata": {"name": name}} for name in self.kai]}
        if path == ALL:
            key, _, value = (params or {})["labelSelector"].partition("=")
            rows = self.groups.values()
            return {"items": [row for row in rows if row["metadata"].get("labels", {}).get(key) == value]}
        return self.groups.get(path)

    async def create(self, path: str, body: Json) -> Json:
        self._write()
        where = f"{path}/{body['metadata']['name']}"
        if where in self.groups:
            raise ApiError("POST", path, 409, "AlreadyExists", "it is there")
        return self.put(body)

    async def patch(self, path: str, body: Any) -> Json:
        self._write()
        found = self.groups.get(path.removesuffix("/status"))
        if found is None:
            raise ApiError("PATCH", path, 404, "NotFound", "it is not there")
        part = "status" if path.endswith("/status") else "spec"
        found[part] = {**found.get(part, {}), **body[part]}
        return found

    async def delete(self, path: str, body: Json | None = None) -> Json:
        self._write()
        assert (body or {})["preconditions"] == {"uid": self.groups[path]["metadata"]["uid"]}
        return self.groups.pop(path)

    def put(self, body: Json) -> Json:
        """Somebody creates it."""
        self._uid += 1
        meta = {**body["metadata"], "uid": f"g-{self._uid}", "namespace": "default"}
        found = self.groups[f"{GROUPS}/{meta['name']}"] = {**body, "metadata": meta}
        return found

    def _write(self) -> None:
        self.writes += 1
        if self.error:
            raise self.error


class Mirrored:
    """A world with a mirror of it."""

    def __init__(self, cliques: Mapping[str, int] | None = None) -> None:
        self.world = world = World(cliques)
        self.server = Server()
        self.leads = True
        views = Views(world.registry, world.room, world.store, world.rounds, world.news)
        self.mirror = self._new(views)
        self._views = views

    def _new(self, views: Views) -> Mirror:
        world = self.world
        return Mirror(self.server, world.registry, world.rounds, views, world.clock, lambda: self.leads)

    def restart(self) -> None:
        self.mirror = self._new(self._views)
        self.world.rounds.restart()

    async def look(self, after: float = 0.0) -> None:
        """A round, what is told after it, and a look of the mirror."""
        self.world.round(after)
        told = list(self.world.news.due(self.world.clock()))
        self.world.rounds.moved.update(row.pod.key for row in told)
        await self.mirror.look()

    def group(self, name: str = NAME) -> Json:
        return self.server.groups[f"{GROUPS}/{name}"]

    def condition(self, kind: str, name: str = NAME) -> Json:
        [row] = [row for row in self.group(name)["status"]["conditions"] if row["type"] == kind]
        return row  # type: ignore[no-any-return]


def owned(number: int, **rest: object) -> list[Pod]:
    return gang(number, owner=make_owner(), **rest)  # type: ignore[arg-type]


async def test_a_waiting_gang_has_one_with_its_counts_and_its_sentence() -> None:
    seen = Mirrored()
    seen.world.update(*owned(5, queue="team-a"))
    await seen.look()
    assert seen.server.groups == {}  # it may board within a moment
    await seen.look(SETTLED_SECONDS)
    group = seen.group()
    assert group["spec"] == {
        "minMember": 5,
        "queue": "team-a",
        "topologyConstraint": {"requiredTopologyLevel": "nvidia.com/gpu.clique"},
    }
    assert group["metadata"]["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llm", "uid": "u-StatefulSet-llm"}
    ]
    status = group["status"]
    assert (status["phase"], status["members"], status["bound"]) == ("Waiting", 5, 0)
    assert status["resourcesStatus"] == {"requested": {"nvidia.com/gpu": "20"}, "allocated": {}}
    assert seen.condition("Gathered")["status"] == "True"
    boarded = seen.condition("Boarded")
    assert (boarded["status"], boarded["reason"]) == ("False", "GangWaiting")
    assert "Closest: a has 4" in boarded["message"]


async def test_it_says_where_the_gang_is_aboard_and_when_that_changed() -> None:
    seen, pods = Mirrored(), owned(3)
    seen.world.board(*pods)
    await seen.look()
    assert seen.condition("Boarded")["reason"] == "GangGranted"
    began = seen.condition("Gathered")["lastTransitionTime"]
    seen.world.bind(*pods)
    await seen.look(60)
    boarded = seen.condition("Boarded")
    assert (boarded["status"], boarded["reason"]) == ("True", "GangBoarded")
    assert boarded["message"] == "Gang default/llm is aboard: 3 members bound in a."
    assert boarded["lastTransitionTime"] != began
    assert seen.condition("Gathered")["lastTransitionTime"] == began
    assert seen.group()["status"]["resourcesStatus"]["allocated"] == {"nvidia.com/gpu": "12"}


async def test_a_gang_that_boards_costs_two_writes() -> None:
    seen, pods = Mirrored(), owned(3)
    seen.world.board(*pods)
    seen.world.bind(*pods)
    await seen.look()
    assert seen.server.writes == 2


async def test_nothing_is_written_while_nothing_changes() -> None:
    seen, pods = Mirrored(), owned(3)
    seen.world.board(*pods)
    seen.world.bind(*pods)
    await seen.look()
    before = seen.server.writes
    for _ in range(3):
        await seen.look(LIST_SECONDS)
    assert seen.server.writes == before


async def test_it_is_removed_with_its_gang() -> None:
    seen, pods = Mirrored(), owned(2)
    seen.world.board(*pods)
    await seen.look()
    for pod in pods:
        seen.world.pods.drop(pod.uid)
    await seen.look(1)
    assert seen.server.groups == {}


async def test_one_that_lost_its_gang_while_we_were_away_is_removed_and_its_times_are_kept_otherwise() -> (
    None
):
    seen = Mirrored({"a": 8})
    for name in ("llm", "gone"):
        seen.world.board(*gang(2, name=name, owner=make_owner(name)))
    await seen.look()
    since = seen.condition("Gathered")["lastTransitionTime"]
    for number in range(2):
        seen.world.pods.drop(f"u-gone-{number}")
    seen.world.rounds.moved.clear()
    seen.restart()
    await seen.look(600)
    assert list(seen.server.groups) == [f"{GROUPS}/{NAME}"]
    assert seen.condition("Gathered")["lastTransitionTime"] == since


async def test_one_that_somebody_deletes_comes_again() -> None:
    seen, pods = Mirrored(), owned(2)
    seen.world.board(*pods)
    seen.world.bind(*pods)
    await seen.look()
    del seen.server.groups[f"{GROUPS}/{NAME}"]
    await seen.look(LIST_SECONDS)
    assert seen.condition("Gathered")["status"] == "True"


async def test_a_new_size_is_written_to_the_spec() -> None:
    seen = Mirrored({"a": 8})
    seen.world.board(*owned(2))
    await seen.look()
    seen.world.update(*owned(3, created=1))
    await seen.look()
    await seen.look(SETTLED_SECONDS)
    assert seen.group()["spec"]["minMember"] == 3


async def test_of_one_that_is_there_already_only_our_conditions_are_written() -> None:
    seen, pods = Mirrored(), owned(2)
    theirs = {"type": "Audited", "status": "True"}
    spec = {"minMember": 1, "queue": "theirs"}
    seen.server.put({"metadata": {"name": NAME}, "spec": spec, "status": {"conditions": [theirs]}})
    seen.world.board(*pods)
    await seen.look()
    assert len(seen.server.groups) == 1
    assert seen.group()["spec"] == spec
    assert list(seen.group()["status"]) == ["conditions"]
    kinds = [row["type"] for row in seen.group()["status"]["conditions"]]
    assert kinds == ["Audited", "Gathered", "Boarded"]
    for pod in pods:
        seen.world.pods.drop(pod.uid)
    await seen.look(1)
    assert seen.condition("Gathered")["message"] == "No member is here."
    assert theirs in seen.group()["status"]["conditions"]


async def test_one_that_the_members_name_is_adopted_and_never_made() -> None:
    seen = Mirrored()
    seen.world.board(*owned(2, pod_group="mine"))
    await seen.look()
    assert seen.server.groups == {}
    seen.server.put({"metadata": {"name": "mine"}, "spec": {"minMember": 2}})
    seen.world.bind(*owned(2, pod_group="mine"))
    await seen.look(1)
    assert seen.condition("Boarded", "mine")["reason"] == "GangBoarded"
    assert list(seen.server.groups) == [f"{GROUPS}/mine"]


async def test_bare_pods_own_it_together_under_the_name_of_their_gang() -> None:
    seen = Mirrored()
    seen.world.board(*gang(2, name="Big_One"))
    await seen.look()
    [group] = seen.server.groups.values()
    assert group["metadata"]["name"] == object_name("Big_One")
    assert [row["kind"] for row in group["metadata"]["ownerReferences"]] == ["Pod", "Pod"]


async def test_two_gangs_of_one_controller_have_one_each() -> None:
    seen = Mirrored({"a": 8})
    for name in ("first", "second"):
        seen.world.board(*gang(2, name=name, owner=make_owner()))
    await seen.look()
    assert sorted(seen.server.groups) == [f"{GROUPS}/{NAME}", f"{GROUPS}/second"]


async def test_a_pod_by_itself_has_none() -> None:
    seen = Mirrored()
    seen.world.board(*owned(1))
    await seen.look()
    assert seen.server.groups == {}


@pytest.mark.parametrize("controller", ["pod-grouper", "podgroup-controller"])
async def test_nothing_is_written_while_kai_runs(controller: str) -> None:
    seen, pods = Mirrored(), owned(2)
    seen.server.kai = [controller]
    seen.world.board(*pods)
    seen.world.bind(*pods)
    await seen.look()
    assert seen.server.writes == 0
    seen.server.kai = []
    await seen.look(LIST_SECONDS)
    assert seen.condition("Gathered")["status"] == "True"


async def test_a_stand_by_writes_nothing() -> None:
    seen = Mirrored()
    seen.leads = False
    seen.world.board(*owned(2))
    await seen.look()
    assert seen.server.writes == 0


async def test_what_could_not_be_written_is_written_later() -> None:
    seen = Mirrored()
    seen.world.board(*owned(2))
    seen.server.error = ApiError("POST", GROUPS, 0, "Unreachable", "nobody there")
    await seen.look()
    await seen.look(1)
    assert seen.server.writes == 2
    seen.server.error = None
    await seen.look(1)
    assert seen.condition("Gathered")["status"] == "True"


async def test_what_is_forbidden_is_not_asked_for_again_and_again() -> None:
    seen = Mirrored()
    seen.server.error = ApiError("POST", GROUPS, 403, "Forbidden", "no")
    seen.world.board(*owned(2))
    for _ in range(5):
        await seen.look(1)
    assert seen.server.writes == 1


async def test_a_thousand_gangs_are_written_at_a_bounded_rate() -> None:
    seen = Mirrored({"a": 200})
    for number in range(3 * PER_LOOK):
        seen.world.update(*gang(2, name=f"g{number}"))
    await seen.look()
    assert len(seen.server.groups) == PER_LOOK
    await seen.look(1)
    await seen.look(1)
    assert len(seen.server.groups) == 3 * PER_LOOK


async def test_a_member_bound_elsewhere_is_counted() -> None:
    seen, pods = Mirrored(), owned(3)
    seen.world.update(*(replace(pod, node="a0", gates=()) for pod in pods[:1]), *pods[1:])
    await seen.look()
    await seen.look(SETTLED_SECONDS)
    assert seen.group()["status"]["bound"] == 1


@pytest.mark.parametrize("label", ["llm", "a.b-1", "x" * 63])
def test_a_label_that_may_be_a_name_is_the_name(label: str) -> None:
    assert object_name(label) == label


def test_labels_that_may_be_none_get_names_of_their_own() -> None:
    names = {object_name(label) for label in ("Big_One", "big-one", "big_one", "_", "A")}
    assert len(names) == 5
    assert all(name == name.lower().strip("-") and "_" not in name for name in names)
