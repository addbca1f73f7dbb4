"""Certificates change while Pods are admitted, on the real API server: nobody notices.

Two replicas serve entries of one registration and share one Secret. Certificates live for seconds here.
"""

import asyncio
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from allaboard.local.cluster import Cluster
from allaboard.local.ports import free_ports
from allaboard.serve.certificates import Certificates, CertificatesError, Place
from allaboard.serve.webhook import Options, serve
from certs import issue, secret
from certs.rotation import Lives
from extender.api import Api, ApiError, Json
from gangs.contract import GATE
from tests.waiting import eventually
from webhook.registration import NAME, Url, build

pytestmark = pytest.mark.cluster

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
LIVES = Lives(ca=timedelta(seconds=18), serving=timedelta(seconds=9), spread=timedelta(seconds=3))
SECONDS = 40.0  # three authorities follow one another in this time
HOST = "127.0.0.1"


@pytest.fixture
async def shared(api: Api, namespace: str) -> AsyncIterator[str]:
    """An empty Secret as the manifests make it; its API path."""
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    await api.create(secrets, {"metadata": {"name": "certificates"}, "type": secret.TYPE})
    yield f"{secrets}/certificates"
    with suppress(ApiError):
        await api.delete(f"{CONFIGURATIONS}/{NAME}")


async def registered(api: Api, ports: tuple[int, int]) -> None:
    """Two entries, each of which must answer: one a replica."""
    body = build(Url("https://placeholder/mutate"), b"", ("allaboard",), ignore_failures=False)
    entries = body["webhooks"][:2]
    for entry, port in zip(entries, ports, strict=True):
        entry["clientConfig"] = {"url": f"https://{HOST}:{port}/mutate"}
        entry["failurePolicy"] = "Fail"
    await api.create(CONFIGURATIONS, {**body, "webhooks": entries})


@asynccontextmanager
async def replica(cluster: Cluster, folder: Path, port: int, shared: str) -> AsyncIterator[None]:
    """A webhook as it runs in a Pod."""
    *_, space, _, name = shared.split("/")
    options = Options(
        kubeconfig=cluster.kubeconfig,
        profiles=("allaboard",),
        port=port,
        state_dir=Path(mkdtemp(dir=folder)),
        service=(space, "webhook"),
        secret=(space, name),
        host=HOST,
        hosts=(HOST,),
        lives=LIVES,
        look_seconds=0.3,
    )
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(options, None, stop, lambda _: ready.set()))
    await asyncio.wait({task, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
    try:
        assert ready.is_set(), task
        yield
    finally:
        stop.set()
        await task


@dataclass
class Load:
    """Creates Pods as fast as they are answered, and remembers what went wrong."""

    api: Api
    namespace: str
    admitted: int = 0
    failed: list[str] = field(default_factory=list)

    async def run(self, pod: Json) -> None:
        while True:
            try:
                made = await self.api.create(
                    f"/api/v1/namespaces/{self.namespace}/pods", pod, {"dryRun": "All"}
                )
                gates = [gate["name"] for gate in made["spec"].get("schedulingGates") or ()]
                if "schedulerName" in pod["spec"] and gates != [GATE]:
                    self.failed.append(f"admitted unseen: {gates}")
            except ApiError as error:
                self.failed.append(str(error))
            self.admitted += 1
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        pods = [pod(schedulerName="allaboard"), pod()]
        tasks = [asyncio.create_task(self.run(p)) for p in pods for _ in range(2)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def pod(**spec: Any) -> Json:
    """One that asks for a gang, or only for GPUs: they reach different replicas."""
    labels = {"allaboard.dev/gang": "g"} if spec else {}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "c", "image": "registry.invalid/c:0", "resources": limits}
    return {
        "metadata": {"generateName": "load-", "labels": labels},
        "spec": {**spec, "containers": [container]},
    }


async def authority(api: Api, shared: str) -> bytes:
    found = await api.get(shared)
    assert found is not None
    return b64decode(found["data"]["ca.crt"])


async def handshakes(api: Api, ports: tuple[int, int], failed: list[str], made: list[int]) -> None:
    """New connections all the time, by the bundle of this moment; the API server keeps its own open."""
    while True:
        found = await api.get(f"{CONFIGURATIONS}/{NAME}")
        assert found is not None
        bundle = b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        context = ssl.create_default_context(cadata=bundle)
        for port in ports:
            try:
                _, writer = await asyncio.open_connection(HOST, port, ssl=context)
                writer.close()
            except OSError as error:
                failed.append(f"{port}: {error}")
            made[0] += 1
        await asyncio.sleep(0.05)


@asynccontextmanager
async def serving(cluster: Cluster, api: Api, folder: Path, shared: str) -> AsyncIterator[tuple[int, int]]:
    found = free_ports(["a", "b"])
    ports = found["a"], found["b"]
    await registered(api, ports)
    async with AsyncExitStack() as stack:
        for port in ports:
            await stack.enter_async_context(replica(cluster, folder, port, shared))
        yield ports


@pytest.mark.timeout(180)
async def test_authorities_rotate_under_load_and_no_admission_fails(
    cluster: Cluster, api: Api, namespace: str, shared: str, tmp_path: Path
) -> None:
    load, refused, made = Load(api, namespace), list[str](), [0]
    authorities: list[bytes] = []
    async with serving(cluster, api, tmp_path, shared) as ports, load.going():
        greeting = asyncio.create_task(handshakes(api, ports, refused, made))
        end = asyncio.get_running_loop().time() + SECONDS
        while asyncio.get_running_loop().time() < end:
            if (now := await authority(api, shared)) not in authorities:
                authorities.append(now)
            await asyncio.sleep(0.2)
        greeting.cancel()
        print(f"{load.admitted} admissions, {made[0]} handshakes, {len(authorities)} authorities")
        assert (load.failed, refused) == ([], [])
        assert load.admitted > 500
        assert made[0] > 200
        assert len(authorities) >= 4
        # The judge's negative control: it does notice when API servers trust somebody else.
        await eventually(lambda: notices(load))


async def distrust(api: Api) -> None:
    other = b64encode(issue.new_ca(datetime.now(UTC)).certificate).decode()
    path = f"{CONFIGURATIONS}/{NAME}"
    found = await api.get(path)
    assert found is not None
    for entry in found["webhooks"]:
        entry["clientConfig"] = {"url": entry["clientConfig"]["url"], "caBundle": other}
    await api.replace(path, found)


async def notices(load: Load) -> bool:
    """Whether it has seen an untrusted authority; made so again and again, as replicas mend it."""
    with suppress(ApiError):
        await distrust(load.api)
    return any("certificate signed by unknown authority" in text for text in load.failed)


async def test_a_bundle_that_somebody_broke_and_a_secret_that_somebody_damaged_are_mended(
    cluster: Cluster, api: Api, namespace: str, shared: str, tmp_path: Path
) -> None:
    async with serving(cluster, api, tmp_path, shared):
        before = await authority(api, shared)
        await api.patch(shared, {"data": {"ca.crt": "", "tls.key": b64encode(b"x").decode()}})

        async def mended() -> bool:
            return await authority(api, shared) not in (b"", before)

        await eventually(mended)
        await distrust(api)

        async def admitted() -> bool:
            made = await api.create(
                f"/api/v1/namespaces/{namespace}/pods", pod(schedulerName="allaboard"), {"dryRun": "All"}
            )
            return bool(made["spec"].get("schedulingGates"))

        async def works_again() -> bool:
            try:
                return await admitted()
            except ApiError:
                return False

        await eventually(works_again)


async def test_five_replicas_that_start_at_once_agree_on_one_authority(
    api: Api, shared: str, tmp_path: Path
) -> None:
    await registered(api, (1, 2))
    base = Place(shared, f"{CONFIGURATIONS}/{NAME}", (HOST,), tmp_path)
    files = [tmp_path / str(number) for number in range(5)]
    replicas = [Certificates(api, replace(base, file=file), lambda: datetime.now(UTC)) for file in files]
    await asyncio.gather(*(each.settle() for each in replicas))
    assert len({file.read_bytes() for file in files}) == 1
    found = await api.get(f"{CONFIGURATIONS}/{NAME}")
    assert found is not None
    told = {b64decode(entry["clientConfig"]["caBundle"]) for entry in found["webhooks"]}
    assert told == {await authority(api, shared)}


async def test_what_is_missing_or_foreign_is_named_with_what_to_do(
    api: Api, namespace: str, shared: str, tmp_path: Path
) -> None:
    place = Place(shared, f"{CONFIGURATIONS}/{NAME}", (HOST,), tmp_path / "file")
    with pytest.raises(CertificatesError, match="zz-allaboard is missing: apply the manifests again"):
        await Certificates(api, place, lambda: datetime.now(UTC)).settle()
    await registered(api, (1, 2))
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    await api.create(secrets, {"metadata": {"name": "foreign"}, "stringData": {"tls.crt": "theirs"}})
    foreign = replace(place, secret=f"{secrets}/foreign")
    with pytest.raises(CertificatesError, match=f"secret {namespace}/foreign: type 'Opaque' is not ours"):
        await Certificates(api, foreign, lambda: datetime.now(UTC)).settle()
    assert not place.file.exists()
