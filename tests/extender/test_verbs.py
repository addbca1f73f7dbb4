"""kube-scheduler's protocol over HTTP: exact names, clear errors."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from extender import verbs
from gangs.sentences import REFUSED_OTHER_NODE, REFUSED_PROMISED
from tests.builders import LEVEL, Json, make_loose, make_members, pod_object
from tests.extender.world import World

Client = TestClient[web.Request, web.Application]


@dataclass
class Served:
    """A world behind HTTP. synced: whether its caches are. leads: whether it does."""

    world: World = field(default_factory=World)
    synced: bool = True
    leads: bool = True


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    app = verbs.application(
        served.world.guard, served.world.barrier, lambda: served.synced, lambda: served.leads
    )
    async with TestClient(TestServer(app)) as made:
        yield made


async def post(client: Client, path: str, body: Json, status: int = 200) -> object:
    answer = await client.post(path, json=body)
    assert answer.status == status
    assert answer.content_type == "application/json"
    found: object = await answer.json()
    return found


async def test_filter_speaks_the_names_of_extender_v1(served: Served, client: Client) -> None:
    served.world.board(*make_members(2, required=LEVEL))
    body = {"Pod": pod_object("llm-0"), "Nodes": None, "NodeNames": ["a0", "a1"]}
    assert await post(client, "/filter", body) == {
        "NodeNames": ["a0"],
        "FailedAndUnresolvableNodes": {"a1": REFUSED_OTHER_NODE},
        "Error": "",
    }


async def test_filter_names_no_node_at_all_as_an_empty_list(served: Served, client: Client) -> None:
    body = {"Pod": pod_object("llm-0"), "NodeNames": ["a0"]}
    found = await post(client, "/filter", body)
    assert isinstance(found, dict)
    assert found["NodeNames"] == []


async def test_prioritize_answers_a_bare_list_of_hosts_and_scores(client: Client) -> None:
    body = {"Pod": pod_object(gang=""), "Nodes": None, "NodeNames": ["a0", "plain"]}
    assert await post(client, "/prioritize", body) == [
        {"Host": "a0", "Score": 0},
        {"Host": "plain", "Score": 10},
    ]


async def test_preempt_gives_back_allowed_nodes_as_they_were_offered(served: Served, client: Client) -> None:
    served.world.update(make_loose("loose", node="a0"), *make_members(2, node="a1"))
    loose = {"Pods": [{"UID": "u-loose"}], "NumPDBViolations": 1}
    offered = {"a0": loose, "a1": {"Pods": [{"UID": "u-llm-0"}], "NumPDBViolations": 0}, "a2": {"Pods": None}}
    body = {"Pod": pod_object(gang=""), "NodeNameToVictims": None, "NodeNameToMetaVictims": offered}
    assert await post(client, "/preempt", body) == {
        "NodeNameToMetaVictims": {"a0": loose, "a2": {"Pods": None}}
    }


async def test_preempt_without_victims_allows_nothing(client: Client) -> None:
    body = {"Pod": pod_object(gang=""), "NodeNameToMetaVictims": None}
    assert await post(client, "/preempt", body) == {"NodeNameToMetaVictims": {}}


async def test_bind_answers_an_empty_error_when_the_pod_is_bound(served: Served, client: Client) -> None:
    served.world.update(make_loose("x"))
    body = {"PodName": "x", "PodNamespace": "default", "PodUID": "u-x", "Node": "a0"}
    assert await post(client, "/bind", body) == {"Error": ""}
    assert served.world.api.paths() == ["/api/v1/namespaces/default/pods/x/binding"]


async def test_bind_answers_the_reason_otherwise(served: Served, client: Client) -> None:
    served.world.update(make_loose("x", gpus=8))
    body = {"PodName": "x", "PodNamespace": "default", "PodUID": "u-x", "Node": "a0"}
    assert await post(client, "/bind", body) == {"Error": REFUSED_PROMISED}


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/filter", {"NodeNames": []}, "/filter: Pod: Field required"),
        ("/filter", {"Pod": {}, "NodeNames": None}, "/filter: NodeNames: Input should be a valid array"),
        ("/filter", {"Pod": {}, "NodeNames": []}, "/filter: the Pod in the call is malformed: 'metadata'"),
        (
            "/filter",
            {"Pod": {"metadata": [], "spec": 7}, "NodeNames": []},
            "/filter: the Pod in the call is malformed: 'list' object has no attribute 'get'",
        ),
        ("/prioritize", {"Pod": 7, "NodeNames": []}, "/prioritize: Pod: Input should be an object"),
        ("/bind", {"PodName": "x"}, "/bind: PodNamespace: Field required"),
        (
            "/preempt",
            {"Pod": pod_object(), "NodeNameToMetaVictims": {"a0": {"Pods": [{}]}}},
            "/preempt: NodeNameToMetaVictims.a0.Pods.0.UID: Field required",
        ),
    ],
)
async def test_a_malformed_call_gets_one_sentence_that_names_the_field(
    client: Client, path: str, body: Json, error: str
) -> None:
    assert await post(client, path, body, status=400) == {"Error": error}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff"])
async def test_what_is_no_object_gets_a_sentence_too(client: Client, body: bytes) -> None:
    answer = await client.post("/filter", data=body)
    assert answer.status == 400
    assert (await answer.json())["Error"].startswith("/filter: body: ")


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt", "/bind"])
async def test_no_verb_is_answered_before_the_caches_are_synced(
    served: Served, client: Client, path: str
) -> None:
    served.synced = False
    assert await post(client, path, {}, status=503) == {"Error": "caches are not synced yet"}


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt", "/bind"])
async def test_no_verb_is_answered_on_stand_by(served: Served, client: Client, path: str) -> None:
    served.leads = False
    assert await post(client, path, {}, status=503) == {
        "Error": "this extender is on stand-by: another one leads"
    }


async def test_a_stand_by_is_ready_but_no_leader(served: Served, client: Client) -> None:
    served.leads = False
    assert (await client.get("/readyz")).status == 200
    assert (await client.get("/leaderz")).status == 503
    served.leads = True
    assert (await client.get("/leaderz")).status == 200


async def test_the_probes_tell_life_from_readiness(served: Served, client: Client) -> None:
    served.synced = False
    assert (await client.get("/healthz")).status == 200
    assert (await client.get("/readyz")).status == 503
    served.synced = True
    assert (await client.get("/readyz")).status == 200
