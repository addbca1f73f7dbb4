"""Why a gang waits, read as people read it: `kubectl describe` of some member, in clusters of two sizes.

Every number and name that is expected comes from the cluster, so that no stored text can be right by chance.
"""

import asyncio
import json
import random
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local.cluster import Cluster, down, up
from allaboard.local.nodes import Fleet
from e2e.kube import until
from e2e.pods import GPUS, HOSTNAME, container, member, pod
from e2e.scene import KAI_TOPOLOGY, Play, statefulset
from tests.dev.running import REGISTRATION
from tests.e2e.conftest import playing

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "explained"
_OTHERS: Final = "others"
_CLIQUE: Final = "nvidia.com/gpu.clique"
_SMALL: Final = Fleet(cliques=2, nodes_per_clique=6, gpus=GPUS, plain=1)

# kubectl describe: type, reason, age, from, message, parted by two blanks or more
_EVENT: Final = re.compile(r"^\s+(?:Normal|Warning)\s+(\S+)\s{2,}\S.*?\s{2,}\S+\s{2,}(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster in which gangs wait. size: nodes of a clique."""

    play: Play

    @property
    def size(self) -> int:
        return len(self.play.stage.nodes[0])

    async def kubectl(self, *words: str) -> str:
        return await self.play.stage.kube.run("-n", _NAMESPACE, *words)

    async def apply(self, *objects: Json) -> None:
        await self.play.stage.kube.apply(_NAMESPACE, list(objects))

    async def told(self, reason: str, selector: str = "", seconds: float = 20.0) -> str:
        """The newest sentence of this reason in the description of a random Pod."""
        pods = await self._pods(selector)
        return await self.described(f"pod/{random.choice(pods)}", reason, seconds)

    async def described(self, what: str, reason: str, seconds: float = 20.0) -> str:
        """The same, of any object."""
        found: list[str] = []

        async def says() -> bool:
            text = await self.kubectl("describe", *what.split("/"))
            found.extend(message for kind, message in _EVENT.findall(text) if kind == reason)
            return bool(found)

        await until(says, f"kubectl describe {what} shows {reason}", seconds)
        return found[-1]

    async def explained(self, name: str) -> Json:
        """What `allaboard explain` prints as JSON."""
        kubeconfig = self.play.stage.kube.kubeconfig
        options = (f"--kubeconfig={kubeconfig}", f"--state-dir={kubeconfig.parent / 'dev'}", "-o", "json")
        command = (sys.executable, "-m", "allaboard", "explain", f"{_NAMESPACE}/{name}", *options)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        found: Json = json.loads(out)
        return found

    async def _pods(self, selector: str) -> list[str]:
        names: list[str] = []

        async def there() -> bool:
            rows = await self.play.stage.kube.items("pods", _NAMESPACE, selector)
            names.extend(row["metadata"]["name"] for row in rows)
            return bool(names)

        await until(there, f"Pods of {_NAMESPACE} {selector}")
        return names


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["large", "small"])
async def stage(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncIterator[Scene]:
    """`allaboard dev` and the checker on a cluster of each size."""
    small = request.param == "small"
    chosen = await asyncio.to_thread(up, "tests-small", fleet=_SMALL) if small else cluster
    try:
        async with playing(chosen) as (stage, observer):
            yield Scene(Play(stage, observer, lambda _: None))
    finally:
        if small:
            await asyncio.to_thread(down, "tests-small")


@pytest_asyncio.fixture(loop_scope="module")
async def scene(stage: Scene) -> AsyncIterator[Scene]:
    """A clean namespace; afterwards nothing is left, and the checker has no complaint."""
    await stage.play.stage.kube.namespace(_NAMESPACE)
    yield stage
    stage.play.clean(_NAMESPACE)
    await stage.play.stage.kube.clear(_NAMESPACE, _OTHERS)


def ranks(number: int, floor: int, **spec: Any) -> list[Json]:
    return [member(f"rank-{i}", "ranks", floor, **spec) for i in range(number)]


async def test_explain_a_missing_member(scene: Scene) -> None:
    floor = scene.size - 1
    await scene.apply(*ranks(floor - 2, floor))
    sentence = await scene.told("GangGathering")
    assert sentence == (
        f"Gang {_NAMESPACE}/ranks: {floor - 2} of {floor} members are here; "
        "waiting for 2 more Pods to be created."
    )


async def test_explain_that_no_clique_is_big_enough(scene: Scene) -> None:
    many = scene.size + 2
    await scene.apply(statefulset("wide", many))
    sentence = await scene.told("GangWaiting")
    assert sentence.startswith(f"Gang {_NAMESPACE}/wide: {many} of {many} members are here; ")
    assert f"needs {many} free nodes with {GPUS} GPUs in one {_CLIQUE}." in sentence
    assert f"No {_CLIQUE} holds more than {scene.size} even when empty." in sentence


async def test_explain_fragmented_cliques(scene: Scene) -> None:
    """Enough free nodes in all, too few in each clique."""
    stage, need = scene.play.stage, scene.size - 1
    for number, rack in enumerate(stage.nodes):
        await stage.occupy(_OTHERS, rack[: 2 + number % 2])
    free = sum(scene.size - 2 - number % 2 for number in range(len(stage.nodes)))
    assert free >= need
    await scene.apply(statefulset("llm", need))
    sentence = await scene.told("GangWaiting")
    [near] = re.findall(r"Closest: (\S+) has", sentence)
    assert near in {clique for number, clique in enumerate(stage.cliques) if number % 2 == 0}
    taken = stage.nodes[stage.cliques.index(near)][:2]
    holders = ", ".join(f"1 taken by busy-{node}" for node in taken)
    assert f"Closest: {near} has {scene.size - 2} ({holders}). " in sentence
    assert sentence.endswith("What would help: 1 taken node coming free.")


async def test_explain_a_taint(scene: Scene) -> None:
    stage = scene.play.stage
    tainted = [node for rack in stage.nodes for node in rack[:3]]
    await stage.kube.run("taint", "node", *tainted, "repair=now:NoSchedule")
    try:
        await scene.apply(statefulset("llm", scene.size))
        sentence = await scene.told("GangWaiting")
        assert f"has {scene.size - 3} (3 tainted). " in sentence
        assert sentence.endswith("What would help: tolerating the taint of 3 nodes, or removing it.")
    finally:
        await stage.kube.run("taint", "node", *tainted, "repair-")


async def test_explain_a_cordon(scene: Scene) -> None:
    stage = scene.play.stage
    cordoned = [node for rack in stage.nodes for node in rack[:2]]
    await stage.kube.run("cordon", *cordoned)
    try:
        await scene.apply(statefulset("llm", scene.size))
        sentence = await scene.told("GangWaiting")
        assert f"has {scene.size - 2} (2 cordoned). What would help: uncordoning 2 nodes." in sentence
    finally:
        await stage.kube.run("uncordon", *cordoned)


async def test_explain_an_unknown_topology(scene: Scene) -> None:
    gang = statefulset("llm", 2)
    gang["metadata"]["annotations"] = {**KAI_TOPOLOGY, "kai.scheduler/topology": "elsewhere"}
    await scene.apply(gang)
    sentence = await scene.told("GangHeld")
    known = [row["metadata"]["name"] for row in await scene.play.stage.kube.items("topologies.kai.scheduler")]
    for fact in (f"statefulset {_NAMESPACE}/llm", "kai.scheduler/topology", '"elsewhere"', *known):
        assert fact in sentence


async def test_explain_a_mistyped_level(scene: Scene) -> None:
    gang = statefulset("llm", 2)
    typo = {**KAI_TOPOLOGY, "kai.scheduler/topology-required-placement": "nvidia.com/gpu.cliqeu"}
    gang["metadata"]["annotations"] = typo
    await scene.apply(gang)
    sentence = await scene.told("GangHeld")
    [topology] = await scene.play.stage.kube.items("topologies.kai.scheduler")
    levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    for fact in (f"statefulset {_NAMESPACE}/llm", "topology-required-placement", "cliqeu", *levels):
        assert fact in sentence


async def test_explain_waiting_behind_the_head_of_the_queue(scene: Scene) -> None:
    """Only the clique that is kept for the first gang has room for the second."""
    stage, (first, *rest) = scene.play.stage, scene.play.stage.nodes
    await stage.occupy(_OTHERS, [first[0], *(node for rack in rest for node in rack[:2])])
    await scene.apply(statefulset("big", scene.size))
    await scene.told("GangWaiting", "app=big")
    await scene.apply(statefulset("small", scene.size - 1))
    sentence = await scene.told("GangWaiting", "app=small")
    kept = f"Room elsewhere is kept for gang {_NAMESPACE}/big, which is ahead in the queue."
    assert sentence.endswith(kept)


async def test_explain_nodes_that_kube_scheduler_refuses(scene: Scene) -> None:
    """On every node sits somebody whom the members shun, which our planner knows nothing of."""
    stage = scene.play.stage
    web = {"matchLabels": {"app": "web"}}
    term = {"labelSelector": web, "namespaces": [_OTHERS], "topologyKey": HOSTNAME}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    shunned = [node for rack in stage.nodes for node in rack]
    small = container(resources={})
    rows = [pod(f"web-{node}", {"app": "web"}, nodeName=node, containers=[small]) for node in shunned]
    await stage.kube.apply(_OTHERS, rows)
    await scene.apply(*ranks(2, 2, affinity=apart))

    sentence = await scene.told("GangReplanned", seconds=40)
    [(who, where)] = re.findall(r"cancelled \((rank-[01]) on (c\d+-n\d+): kube-scheduler", sentence)
    assert where in shunned
    pods = await stage.kube.items("pods", _NAMESPACE)
    assert who in {row["metadata"]["name"] for row in pods if not row["spec"].get("nodeName")}
    assert "didn't match pod anti-affinity rules" in await scene.described(f"pod/{who}", "FailedScheduling")


async def test_explain_what_a_resourcequota_refuses(scene: Scene) -> None:
    wanted = scene.size - 2
    hard = {"requests.nvidia.com/gpu": str((wanted - 1) * GPUS)}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "spec": {"hard": hard},
    }
    await scene.apply(quota)
    try:
        await scene.apply(statefulset("capped", wanted))
        sentence = ""

        async def named() -> bool:
            nonlocal sentence
            sentence = await scene.told("GangGathering")
            return "exceeded quota" in sentence

        await until(named, "the sentence names the quota", 30)
        assert f"{wanted - 1} of {wanted} members are here; waiting for 1 more Pod to be created." in sentence
        assert "StatefulSet capped can't create it: exceeded quota: gpus" in sentence
        assert f"limited: requests.nvidia.com/gpu={(wanted - 1) * GPUS}" in sentence
    finally:
        await scene.kubectl("delete", "resourcequota", "gpus")


async def test_explain_a_gate_of_somebody_else(scene: Scene) -> None:
    floor = scene.size // 2
    members = ranks(floor, floor)
    for row in members[:2]:
        row["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    await scene.apply(*members)
    assert await scene.told("GangGathering") == (
        f"Gang {_NAMESPACE}/ranks: {floor - 2} of {floor} members are here; "
        "2 Pods held by scheduling gate example.com/quota."
    )


async def test_explain_members_without_a_gate(scene: Scene) -> None:
    floor = scene.size - 1
    members = ranks(floor - 1, floor)
    for row in members:
        row["metadata"]["labels"]["allaboard.dev/webhook"] = "ignore"
    await scene.apply(*members)
    sentence = await scene.told("GangGathering")
    assert f"{floor - 1} of {floor} members are here; waiting for 1 more Pod to be created." in sentence
    pods = await scene.play.stage.kube.items("pods", _NAMESPACE)
    assert not any(row["spec"].get("schedulingGates") or row["spec"].get("nodeName") for row in pods)
    refusal = await scene.told("FailedScheduling")
    assert "gang is waiting for its permit to board (see the Pod's events)" in refusal


async def test_explain_a_volume_that_ties_a_member_to_a_node_in_use(scene: Scene) -> None:
    stage = scene.play.stage
    home = stage.nodes[-1][0]
    await stage.occupy(_OTHERS, [home])
    await scene.apply(*_volume(home))
    volumes = [{"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}]
    await scene.apply(member("rank-0", "ranks", 2, volumes=volumes), member("rank-1", "ranks", 2))
    try:
        sentence = await scene.told("GangWaiting")
        tied = f"rank-0 is tied by a volume or claim to {home} ({home}: taken by busy-{home})."
        assert sentence.endswith(tied)
    finally:
        await scene.kubectl("delete", "pvc/weights", "pv/weights", "--wait=false")


def _volume(node: str) -> list[Json]:
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    reach = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "weights"},
        "spec": {
            "capacity": size,
            "accessModes": modes,
            "claimRef": {"namespace": _NAMESPACE, "name": "weights"},
            "hostPath": {"path": "/var/empty"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": reach}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights"},
        "spec": {
            "storageClassName": "",
            "volumeName": "weights",
            "accessModes": modes,
            "resources": {"requests": size},
        },
    }
    return [volume, claim]


async def test_explain_a_pod_that_slipped_past_the_webhook(scene: Scene) -> None:
    kube = scene.play.stage.kube
    registration = json.loads(await kube.run("get", "--raw", REGISTRATION))
    await kube.run("delete", "mutatingwebhookconfigurations", "zz-allaboard")
    keys = {**KAI_TOPOLOGY, "kai.scheduler/batch-min-member": "2"}
    template = {"spec": {**pod("any")["spec"], "restartPolicy": "Never", "schedulerName": "kai-scheduler"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": keys},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    try:
        await scene.apply(job)
        sentence = await scene.described("job/train", "GangSlipped")
        names = await scene._pods("job-name=train")
        assert re.findall(rf"Pod {_NAMESPACE}/(train-\w+) was created while", sentence)[0] in names
        assert "Delete it; its controller will create it anew." in sentence
    finally:
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            registration["metadata"].pop(field, None)
        await kube.run("create", "-f", "-", stdin=json.dumps(registration))
        await until(lambda: _mutates(scene), "the webhook is asked again")


async def _mutates(scene: Scene) -> bool:
    text = json.dumps(member("probe", "probe", 2))
    words = ("-n", _NAMESPACE, "create", "-f", "-", "--dry-run=server", "-o", "json")
    made = json.loads(await scene.play.stage.kube.run(*words, stdin=text))
    return bool(made["spec"].get("schedulingGates"))


async def test_explain_that_gated_pods_move_no_autoscaler(scene: Scene) -> None:
    await scene.apply(statefulset("wide", scene.size + 1))
    sentence = await scene.told("GangWaiting")
    told = await scene.explained("wide")
    assert told["message"] == sentence
    assert "a cluster autoscaler adds no nodes for gated Pods" in told["hints"][0]
    pods = await scene.play.stage.kube.items("pods", _NAMESPACE)
    assert all(row["spec"]["schedulingGates"] for row in pods)
    assert [(row["domain"], row["have"]) for row in told["domains"]] == [
        (clique, scene.size) for clique in sorted(scene.play.stage.cliques)
    ]
