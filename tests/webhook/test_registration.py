"""What reaches us: the registration on a real API server, which alone can say what its CEL means."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

import certs
from extender.api import Api, ApiError
from gangs import contract
from tests.waiting import eventually
from tests.webhook.world import PROFILES, REQUIRED_LEVEL, Json, pod
from webhook.app import application
from webhook.lookup import Lookups
from webhook.metrics import Meters
from webhook.mutate import Mutator
from webhook.registration import NAME, Service, Url, build

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
GPU_LIMIT = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def test_only_the_named_may_not_slip_by() -> None:
    entries = build(Service("allaboard", "webhook"), b"pem", PROFILES, ignore_failures=False)["webhooks"]
    assert [(e["name"].split(".")[0], e["failurePolicy"], e["timeoutSeconds"]) for e in entries] == [
        ("named", "Fail", 3),
        ("owned", "Ignore", 2),
        ("enabled", "Ignore", 2),
        ("miniservice", "Ignore", 2),
    ]


def test_in_development_any_may_slip_by() -> None:
    configuration = build(Url("https://127.0.0.1:1/mutate"), b"pem", PROFILES, ignore_failures=True)
    assert {entry["failurePolicy"] for entry in configuration["webhooks"]} == {"Ignore"}


def test_pods_of_the_default_scheduler_are_not_shown_for_their_name_even_where_it_is_served() -> None:
    profiles = ("default-scheduler", "allaboard")
    named = build(Url("https://127.0.0.1:1/mutate"), b"pem", profiles, ignore_failures=True)["webhooks"][0]
    [condition] = [c for c in named["matchConditions"] if c["name"] == "named"]
    assert "default-scheduler" not in condition["expression"]


@dataclass
class Arrivals:
    """The real webhook, counting by generateName the Pods that it is shown."""

    api: Api
    namespace: str
    seen: Counter[str] = field(default_factory=Counter)

    async def of(self, obj: Json, namespace: str = "") -> int:
        """How often the webhook is asked when this Pod is created (dry run)."""
        space, name = namespace or self.namespace, f"p{sum(self.seen.values())}-{time.monotonic_ns()}-"
        metadata = {**obj["metadata"], "generateName": name, "namespace": space}
        metadata.pop("name")
        body = {"apiVersion": "v1", "kind": "Pod", **obj, "metadata": metadata}
        await self.api.create(f"/api/v1/namespaces/{space}/pods", body, {"dryRun": "All"})
        return self.seen[name]

    async def label(self, **labels: str) -> None:
        """Label the namespace, and wait until a plain Pod in it arrives."""
        await self.api.patch(f"/api/v1/namespaces/{self.namespace}", {"metadata": {"labels": labels}})

        async def arrives() -> bool:
            return await self.of(plain()) > 0

        await eventually(arrives)


def plain(**spec: Any) -> Json:
    return pod(gpus=0, **spec)


@pytest.fixture
async def arrivals(api: Api, namespace: str, tmp_path: Path) -> AsyncIterator[Arrivals]:
    found = Arrivals(api, namespace)

    @web.middleware
    async def count(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        review = orjson.loads(await request.read())
        found.seen[review["request"]["object"]["metadata"]["generateName"]] += 1
        return await handler(request)

    serving = certs.ensure(tmp_path, ["127.0.0.1"], datetime.now(UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.cert_file, serving.key_file)
    lookups = Lookups(api, time.monotonic)
    app = application(Mutator(lookups, PROFILES), Meters(None))
    app.middlewares.append(count)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = Url(f"https://127.0.0.1:{runner.addresses[0][1]}/mutate")
    await _replace(api, build(url, serving.ca_bundle, PROFILES, ignore_failures=False))

    async def registered() -> bool:
        return await found.of(plain(schedulerName="allaboard")) > 0

    try:
        await eventually(registered)
        yield found
    finally:
        await api.delete(f"{CONFIGURATIONS}/{NAME}")
        await runner.cleanup()
        await lookups.close()
        await _unregistered(api, namespace)


async def _replace(api: Api, configuration: Json) -> None:
    try:
        await api.delete(f"{CONFIGURATIONS}/{NAME}")
    except ApiError as error:
        if error.status != 404:
            raise
    await api.create(CONFIGURATIONS, configuration)


async def _unregistered(api: Api, namespace: str) -> None:
    # The API server notices a moment later, and until then whoever names us is refused.
    body = {"apiVersion": "v1", "kind": "Pod", **plain(schedulerName="allaboard")}
    body["metadata"] = {"generateName": "after-"}

    async def forgotten() -> bool:
        try:
            await api.create(f"/api/v1/namespaces/{namespace}/pods", body, {"dryRun": "All"})
        except ApiError:
            await asyncio.sleep(0.1)
            return False
        return True

    await eventually(forgotten)


@pytest.mark.cluster
async def test_each_pod_that_may_ask_for_something_arrives_once(arrivals: Arrivals) -> None:
    init = [{"name": "warm", "image": "registry.invalid/warm:1", **GPU_LIMIT}]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    for asking in (
        plain(schedulerName="allaboard"),
        plain(schedulerName="kai-scheduler"),
        pod(None, {REQUIRED_LEVEL: "nvidia.com/gpu.clique"}, gpus=0),
        pod(None, {contract.KAI_BATCH_MIN_MEMBER: "2"}, gpus=0),
        pod(None, {contract.NVCF_INDEX: "0"}, gpus=0),
        pod(None, {contract.ANNOTATION_MIN_MEMBER: "2"}, gpus=0),
        pod(None, None, {contract.LABEL_GANG: "mine"}, gpus=0),
        pod(None, None, {contract.LABEL_GANG: "mine"}, schedulerName="allaboard"),
        pod(gpus=4),
        plain(initContainers=init),
        plain(resourceClaims=claims),
    ):
        assert await arrivals.of(asking) == 1, asking


@pytest.mark.cluster
async def test_other_pods_never_arrive(arrivals: Arrivals) -> None:
    opted_out = {contract.LABEL_WEBHOOK: "ignore", contract.LABEL_GANG: "mine"}
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d2c1"}
    daemon_pod = pod(None, schedulerName="allaboard")
    daemon_pod["metadata"]["ownerReferences"] = [{**daemon, "controller": True}]
    for other in (
        plain(),
        plain(schedulerName="volcano"),
        pod(gpus=4, schedulerName="volcano"),
        pod(None, {REQUIRED_LEVEL: "nvidia.com/gpu.clique"}, gpus=0, schedulerName="volcano"),
        pod(None, None, {contract.COSCHEDULING_GROUP: "mine"}, schedulerName="scheduler-plugins-scheduler"),
        pod(None, {"example.com/a": "b"}, {"app": "web", contract.LABEL_QUEUE: "q"}, gpus=0),
        pod(None, None, opted_out, schedulerName="allaboard"),
        plain(schedulerName="allaboard", nodeName="some-node"),
        daemon_pod,
    ):
        assert await arrivals.of(other) == 0, other
    assert await arrivals.of(pod(None, schedulerName="allaboard"), "kube-system") == 0


@pytest.mark.cluster
async def test_in_an_enabled_namespace_every_pod_arrives_once(arrivals: Arrivals) -> None:
    await arrivals.label(**{contract.LABEL_ENABLED: "true"})
    for any_pod in (plain(), pod(gpus=4), plain(schedulerName="allaboard")):
        assert await arrivals.of(any_pod) == 1


@pytest.mark.cluster
async def test_in_a_function_namespace_every_pod_arrives_once_though_it_is_changed(
    arrivals: Arrivals,
) -> None:
    await arrivals.label(**{contract.NVCF_INSTANCE_TYPE: "miniservice"})
    for any_pod in (plain(), pod(gpus=4), pod(None, {contract.NVCF_INDEX: "0"})):
        assert await arrivals.of(any_pod) == 1
    await arrivals.label(**{contract.LABEL_ENABLED: "true"})
    assert await arrivals.of(plain()) == 1


@pytest.mark.cluster
async def test_a_namespace_that_opted_out_shows_us_nothing(arrivals: Arrivals) -> None:
    asking = plain(schedulerName="allaboard")
    path = f"/api/v1/namespaces/{arrivals.namespace}"
    await arrivals.api.patch(path, {"metadata": {"labels": {contract.LABEL_WEBHOOK: "ignore"}}})

    async def unseen() -> bool:
        return await arrivals.of(asking) == 0

    await eventually(unseen)
    assert await arrivals.of(pod(gpus=4)) == 0
