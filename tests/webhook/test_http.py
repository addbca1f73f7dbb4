"""The server as the API server meets it: TLS, AdmissionReview, and what it says to nonsense."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

import certs
from gangs import contract, figures
from tests.webhook.world import (
    CLIQUE,
    MNNVL,
    PROFILES,
    REQUIRED_LEVEL,
    TOPOLOGY,
    Json,
    World,
    gates,
    parallel,
    patched,
    pod,
    review,
)
from webhook.app import Options, run

LLM = parallel("llm", {TOPOLOGY: "nvcf-mnnvl-topology", REQUIRED_LEVEL: CLIQUE})
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Server:
    session: aiohttp.ClientSession
    world: World

    async def post(self, body: bytes | Json, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.session.post("/mutate", data=data, headers=headers or JSON) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    serving = certs.ensure(tmp_path, ["127.0.0.1"], datetime.now(UTC))
    world, stop = World(MNNVL, LLM), asyncio.Event()
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    options = Options("127.0.0.1", 0, serving.cert_file, serving.key_file, PROFILES)
    task = asyncio.create_task(run(options, world, stop, ready.set_result))
    port = await asyncio.wait_for(ready, 10)
    trust = ssl.create_default_context(cadata=serving.ca_bundle.decode())
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:
        yield Server(session, world)
    stop.set()
    await task


async def test_a_review_is_answered_with_a_patch(server: Server) -> None:
    member = pod(LLM)
    status, answer = await server.post(review(member, dryRun=True))
    response = answer["response"]
    assert (status, answer["apiVersion"], answer["kind"]) == (200, "admission.k8s.io/v1", "AdmissionReview")
    assert (response["uid"], response["allowed"], response["patchType"]) == ("705ab4f5", True, "JSONPatch")
    stored = patched(member, orjson.loads(base64.b64decode(response["patch"])))
    assert gates(stored) == [contract.GATE]


async def test_a_pod_that_stays_as_it_is_gets_no_patch_at_all(server: Server) -> None:
    _, answer = await server.post(review(pod()))
    assert answer["response"] == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize(
    "request_part",
    [
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
        {"operation": "UPDATE"},
        {"subResource": "binding"},
    ],
)
async def test_what_is_no_new_pod_is_allowed_as_it_is(server: Server, request_part: Json) -> None:
    status, answer = await server.post(review(pod(LLM), **request_part))
    assert status == 200
    assert answer["response"] == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml"])
async def test_another_content_type_is_refused(server: Server, content_type: str) -> None:
    status, answer = await server.post(b"{}", {"Content-Type": content_type})
    assert status == 415
    assert answer["message"] == (
        f"Content-Type: '{content_type}' is not understood (allowed: application/json)"
    )


async def test_a_body_that_is_too_large_is_refused(server: Server) -> None:
    status, answer = await server.post(b" " * (4 * 2**20 + 1))
    assert status == 413
    assert "larger than 4194304 bytes" in answer["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "the body is no JSON"),
        (b"[]", "the body: Input should be"),
        (b"{}", "apiVersion: Field required"),
        ({**review(pod()), "apiVersion": "v1"}, "apiVersion: Input should be 'admission.k8s.io/v1'"),
        ({**review(pod()), "kind": "Pod"}, "kind: Input should be 'AdmissionReview'"),
        ({**review(pod()), "request": None}, "request: "),
        (review(pod(), object=None), "request.object: missing; a Pod is expected"),
        (review({"metadata": {}}), "spec: Field required"),
        (review({"metadata": {"labels": []}, "spec": {}}), "metadata.labels: Input should be"),
        (review({"metadata": {}, "spec": {"schedulingGates": [{}]}}), "spec.schedulingGates.0.name: Field"),
    ],
)
async def test_a_malformed_review_is_refused_by_field(server: Server, body: bytes | Json, said: str) -> None:
    status, answer = await server.post(body)
    assert status == 400
    assert answer["message"].startswith("AdmissionReview: ")
    assert said in answer["message"]


async def test_a_fault_of_ours_never_denies_a_pod(server: Server) -> None:
    broken = parallel("broken", LLM["metadata"]["annotations"])
    broken["spec"]["replicas"] = "four"
    server.world.add(broken)
    status, answer = await server.post(review(pod(broken)))
    assert status == 200
    assert answer["response"]["allowed"] is True
    assert "pod default/broken-0" in answer["response"]["warnings"][0]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_are_answered(server: Server, path: str) -> None:
    async with server.session.get(path) as answer:
        assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_512_pods_of_one_job_cost_three_look_ups(server: Server) -> None:
    body = orjson.dumps(review(pod(LLM)))
    answers = await asyncio.gather(*(server.post(body) for _ in range(512)))
    assert {status for status, _ in answers} == {200}
    assert sorted(server.world.calls) == [
        "/api/v1/namespaces/default",
        "/apis/apps/v1/namespaces/default/statefulsets/llm",
        "/apis/kai.scheduler/v1alpha1/topologies",
    ]


async def test_answers_are_counted_by_kind_and_the_end_of_the_certificate_is_told(
    server: Server, tmp_path: Path
) -> None:
    await server.post(review(pod(LLM)))
    await server.post(review(pod()))
    await server.post(b"{")
    async with server.session.get("/metrics") as answer:
        text = await answer.text()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    counts = {kind: found["allaboard_admission_seconds_count", kind] for kind in figures.ANSWERS}
    assert counts == {"patched": 1, "unchanged": 1, "malformed": 1, "undecided": 0, "failed": 0}
    expires = _expiry(certs.ensure(tmp_path, ["127.0.0.1"], datetime.now(UTC)).cert_file)
    assert found[("allaboard_certificate_expiry_timestamp_seconds",)] == expires


def _expiry(file: Path) -> float:
    return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc.timestamp()
