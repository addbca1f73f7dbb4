"""Least privilege, judged by the real RBAC authorizer: no right is missing, and none is there for nothing.

Everything runs by tokens of the service accounts of `manifests/`, on a cluster of its own, whose API server
writes down what they ask for. Then the audit log is compared with the roles.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from allaboard.local.binaries import find
from allaboard.local.cluster import Cluster, down, up
from allaboard.local.ports import free_ports
from e2e.demo import SCENES
from e2e.kube import Kube, until
from e2e.observer import observed
from e2e.pods import pod
from e2e.scene import KAI_TOPOLOGY, Play, statefulset
from e2e.scenes.crash import extender_killed_at_the_barrier
from e2e.stage import staged
from extender import wire
from extender.api import JSON_PATCH, Api, connect
from extender.pod_calls import as_it_is
from extender.torn import PATIENCE_SECONDS, Torn
from tests.builders import make_owner
from tests.conftest import FLEET
from tests.dev.running import once, running
from tests.extender.test_torn import half_bound
from tests.road.standin import StandIn
from tests.road.test_every_dialect import CRDS, DIALECTS, MEMBERS
from tests.ship.conftest import MANIFESTS, NAMESPACE, kubectl_of
from tests.ship.rendered import by_name
from tests.ship.rights import Right, allowed, asked, by_kube_scheduler, events, refused, unused
from tests.ship.tokens import as_service_account
from webhook.sets.kubeflow import OPERATORS

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

GROVE: Final = Path(__file__).parents[1] / "road" / "grove.yaml"
OVERLAY: Final = MANIFESTS / "overlays" / "kind"
PROFILES: Final = "--profiles=allaboard,kai-scheduler"
REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-allaboard"


@dataclass(frozen=True, slots=True)
class Ours:
    """A cluster where all of Allaboard runs by the rights that its manifests give."""

    play: Play
    api: Api
    scheduler: Api
    log: Path


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("rights")))
        try:
            yield up("rights", fleet=FLEET)
        finally:
            down("rights")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ours(own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ours]:
    kubeconfig, folder = own_cluster.kubeconfig, tmp_path_factory.mktemp("parts")
    kubectl_of(kubeconfig, "apply", "-k", str(OVERLAY))
    async with AsyncExitStack() as stack:
        api = await connected(stack, kubeconfig)
        as_scheduler = await as_service_account(own_cluster, api, NAMESPACE, "allaboard-scheduler")
        as_webhook = await as_service_account(own_cluster, api, NAMESPACE, "allaboard-webhook")
        await stack.enter_async_context(extending(folder, as_scheduler))
        await stack.enter_async_context(admitting(folder, as_webhook, api))
        kube = Kube(kubeconfig, str(find("kubectl")))
        await kube.namespace("others")
        observer = await stack.enter_async_context(observed(kubeconfig))
        play = Play(await staged(kube, dev=0), observer, lambda _: None)
        scheduler = await connected(stack, as_scheduler)
        yield Ours(play, api, scheduler, kubeconfig.parent / "logs" / "audit.log")


async def connected(stack: AsyncExitStack, kubeconfig: Path) -> Api:
    api = await connect(kubeconfig)
    stack.push_async_callback(api.close)
    return api


@asynccontextmanager
async def extending(folder: Path, kubeconfig: Path) -> AsyncIterator[None]:
    """The scheduler's Pod: install, then extender and kube-scheduler side by side, both by its account."""
    common = (f"--kubeconfig={kubeconfig}", f"--state-dir={folder / 'extender'}", PROFILES)
    installed = await asyncio.to_thread(once, "install", *common)
    assert installed.returncode == 0, installed.stderr
    election = ("--leader-election=scheduler", "--lease=allaboard-system/allaboard-scheduler")
    config = folder / "kube-scheduler.yaml"
    config.write_text(once("scheduler-config", *common, *election).stdout)
    with running("extender", *common, *election) as extender:
        await asyncio.to_thread(extender.until_ready)
        command = (str(find("kube-scheduler")), f"--config={config}", "--secure-port=0")
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            await process.wait()
            await asyncio.to_thread(extender.stop, signal.SIGTERM)


@asynccontextmanager
async def admitting(folder: Path, kubeconfig: Path, api: Api) -> AsyncIterator[None]:
    """The webhook's Pod. There is no network for Services here, so the registration gets a URL instead."""
    port = free_ports(["webhook"])["webhook"]
    client = {"url": f"https://127.0.0.1:{port}/mutate"}
    operations = [{"op": "replace", "path": f"/webhooks/{i}/clientConfig", "value": client} for i in range(4)]
    await api.patch(REGISTRATION, operations, JSON_PATCH)
    flags = (f"--kubeconfig={kubeconfig}", f"--state-dir={folder / 'webhook'}", PROFILES)
    with running(
        "webhook", *flags, f"--webhook-port={port}", f"--service={NAMESPACE}/allaboard-webhook"
    ) as webhook:
        await asyncio.to_thread(webhook.until_ready)
        yield
        await asyncio.to_thread(webhook.stop, signal.SIGTERM)


async def test_every_scene_is_played_by_the_rights_of_the_manifests(ours: Ours) -> None:
    for scene in SCENES:
        if scene is not extender_killed_at_the_barrier:  # it kills a part of `allaboard dev`
            await scene(ours.play)


async def test_a_gang_of_every_dialect_boards_by_the_rights_of_the_manifests(ours: Ours) -> None:
    kube = ours.play.stage.kube
    await kube.run("apply", "-f", str(CRDS))
    await kube.run("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    spaces = {f"dialect-{number}": objects for number, objects in enumerate(DIALECTS.values())}
    for space, objects in spaces.items():
        await kube.namespace(space)
        await kube.apply(space, objects)
    for space in spaces:
        await ours.play.bound(space, MEMBERS)
    await kube.clear(*spaces)


async def test_what_is_seldom_needed_is_allowed_too(ours: Ours) -> None:
    kube = ours.play.stage.kube
    await kube.namespace("seldom")
    for operator in OPERATORS:
        labels = {"training.kubeflow.org/job-name": "fit", "training.kubeflow.org/operator-name": operator}
        await kube.apply("seldom", pod(operator, labels, KAI_TOPOLOGY))
    named = pod("named", None, {"pod-group-name": "g"}, schedulerName="allaboard")
    await kube.apply("seldom", [named, _deployment()])
    await grove(ours, "grove")
    await looked_past(ours, "past")
    await slipped_by(ours, "slipped")
    await short_of_members(ours, "short")
    await scaled(ours, "scaled")
    await torn(ours)


async def grove(ours: Ours, namespace: str) -> None:
    """What Grove's operator makes, with a topology that has to be looked up."""
    kube = ours.play.stage.kube
    await kube.run("apply", "-f", str(GROVE))
    await kube.run("wait", "--for=condition=Established", "--timeout=30s", "-f", str(GROVE))
    await kube.namespace(namespace)
    standin = StandIn.of(kube, namespace, "kai")
    named = {"metadata": {"annotations": {"grove.io/topology-name": "mnnvl"}}}
    worded = [_worded({**gang, "metadata": gang["metadata"] | named["metadata"]}) for gang in standin.gangs]
    standin = replace(standin, gangs=worded)
    await standin.create()
    await standin.fill()
    for name in standin.names:
        await standin.initialize(name)
        await standin.ungate(name)
    for right in ("podgangs/status", "podgangs"):
        verb = "patch" if "status" in right else "watch"
        wanted = Right("allaboard-scheduler", "scheduler.grove.io", right, verb)
        await until(lambda wanted=wanted: _was_asked(ours, wanted), f"{wanted}", seconds=60)  # type: ignore[misc]
    await standin.remove()


def _worded(podgang: Json) -> Json:
    """The PodGang with a word in the place of the label key, which a ClusterTopologyBinding explains."""
    return dict(json.loads(json.dumps(podgang).replace("nvidia.com/gpu.clique", "clique")))


async def looked_past(ours: Ours, namespace: str) -> None:
    """Pods whose owners belong to owners that are looked past."""
    kube = ours.play.stage.kube
    await kube.namespace(namespace)
    for group_version, kind in (
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
        ("argoproj.io/v1alpha1", "Workflow"),
        ("nvidia.com/v1alpha1", "DynamoGraphDeployment"),
        ("nvidia.com/v1alpha1", "DynamoComponentDeployment"),
    ):
        member = pod(kind.lower(), {"priorityClassName": "system-cluster-critical"}, KAI_TOPOLOGY)
        owner = {"apiVersion": group_version, "kind": kind, "name": "top", "uid": "no-such-uid"}
        member["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        await kube.apply(namespace, member)


async def slipped_by(ours: Ours, namespace: str) -> None:
    """A workload that asked, in a namespace that has opted out: the extender looks whether it has."""
    kube = ours.play.stage.kube
    await kube.namespace(namespace, {"allaboard.dev/webhook": "ignore"})
    await kube.apply(namespace, statefulset("llm", 2))
    wanted = Right("allaboard-scheduler", "", "namespaces", "get", namespace)
    await until(lambda: _was_asked(ours, wanted), f"{wanted}")


async def scaled(ours: Ours, namespace: str) -> None:
    """A gang that grows: its PodGroup says another number."""
    kube = ours.play.stage.kube
    await kube.namespace(namespace)
    await kube.apply(namespace, statefulset("llm", 2))
    await ours.play.bound(namespace, 2)
    await until(lambda: _has_podgroup(kube, namespace), "the gang has a PodGroup")
    await kube.run("-n", namespace, "scale", "statefulset/llm", "--replicas=3")
    wanted = Right("allaboard-scheduler", "scheduling.run.ai", "podgroups", "patch")
    await until(lambda: _was_asked(ours, wanted), f"{wanted}")


async def _has_podgroup(kube: Kube, namespace: str) -> bool:
    return bool(await kube.items("podgroups", namespace))


async def short_of_members(ours: Ours, namespace: str) -> None:
    """A quota lets only one of two members be made: the extender reads why."""
    kube = ours.play.stage.kube
    await kube.namespace(namespace)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}}
    await kube.apply(namespace, {**quota, "spec": {"hard": {"pods": "1"}}})
    await kube.apply(namespace, statefulset("llm", 2))
    wanted = Right("allaboard-scheduler", "", "events", "list")
    await until(lambda: _was_asked(ours, wanted), f"{wanted}")


async def torn(ours: Ours) -> None:
    """Two things that go wrong rarely, by the same code: a write that is refused, and a torn gang."""
    [found, *_] = await ours.play.stage.kube.items("pods", "seldom")
    assert await as_it_is(ours.scheduler, wire.pod(found)) is not None
    world, _, _ = half_bound(make_owner())
    mending = Torn(ours.scheduler, world.rounds, world.clock)
    await mending.mend()
    world.round(after=PATIENCE_SECONDS)
    assert await mending.mend()


async def _was_asked(ours: Ours, right: Right) -> bool:
    return any(right.covers(row) for row in asked(events(ours.log)))


async def test_no_right_was_missing(ours: Ours) -> None:
    rows = events(ours.log)
    assert {by_kube_scheduler(row) for row in rows} == {True, False}
    assert len(rows) > 500
    assert refused(rows) == set()


async def test_no_right_is_there_for_nothing(ours: Ours) -> None:
    objects = by_name(
        yaml.safe_load_all(kubectl_of(ours.play.stage.kube.kubeconfig, "kustomize", str(OVERLAY)))
    )
    rights = allowed(objects.values())
    assert len(rights) > 50
    assert sorted(unused(rights, asked(events(ours.log)))) == []


async def test_the_judge_notices_a_right_too_few_and_one_too_many(ours: Ours) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/allaboard-webhook-ray"
    await ours.api.patch(role, {"rules": []})
    members = DIALECTS["RayCluster"]
    await ours.play.stage.kube.namespace("judged")

    async def noticed() -> bool:
        await ours.play.stage.kube.apply("judged", members)
        await ours.play.stage.kube.clear("judged")
        return any(right.resource == "rayclusters" for right in refused(events(ours.log)))

    await until(noticed, "a missing right is noticed")
    extra = Right("allaboard-webhook", "", "secrets", "list")
    assert unused({extra}, asked(events(ours.log))) == {extra}


def _deployment() -> dict[str, Any]:
    spec = pod("server")["spec"]
    del spec["terminationGracePeriodSeconds"]
    template = {"metadata": {"labels": {"app": "server"}}, "spec": spec}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": "server"}}, "template": template}
    meta = {"name": "server", "annotations": KAI_TOPOLOGY}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body}
