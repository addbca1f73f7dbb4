"""`kubectl describe podgroup` on the real control plane: what it says is what the cluster holds."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import GPUS, member
from e2e.scene import Play, statefulset
from e2e.stage import CLIQUE_NODES, Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "mirrored"
_KIND: Final = "podgroups.scheduling.run.ai"


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE)


async def _described(play: Play, name: str, *expected: str) -> str:
    """What kubectl describe says, once all that is expected is in it."""
    told: list[str] = []

    async def says_so() -> bool:
        found = await play.stage.kube.items(_KIND, _NAMESPACE)
        if name in {row["metadata"]["name"] for row in found}:
            told.append(await play.stage.kube.run("-n", _NAMESPACE, "describe", _KIND, name))
        return bool(told) and all(text in told[-1] for text in expected)

    await until(says_so, f"podgroup {name} says {', '.join(expected)}")
    return told[-1]


async def _statefulset(play: Play, name: str, replicas: int) -> str:
    """Make it; the name that KAI would give to its PodGroup."""
    await play.stage.kube.apply(_NAMESPACE, statefulset(name, replicas))
    [made] = await play.stage.kube.items("statefulsets", _NAMESPACE)
    return f"pg-{name}-{made['metadata']['uid']}"


async def test_a_waiting_gang_explains_itself_and_then_says_where_it_is_aboard(play: Play) -> None:
    kube, too_many = play.stage.kube, CLIQUE_NODES + 1
    name = await _statefulset(play, "wide", too_many)
    sentence = await play.waiting(_NAMESPACE, "GangWaiting", "wide-3")
    told = await _described(play, name, "GangWaiting")
    assert sentence in " ".join(told.split())
    assert f"{too_many} of {too_many} members are here." in told
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert {"Phase: Waiting", f"Members: {too_many}", "Bound: 0", f"Min Member: {too_many}"} <= set(lines)
    await kube.run("-n", _NAMESPACE, "scale", "statefulset", "wide", f"--replicas={CLIQUE_NODES}")
    await play.bound(_NAMESPACE, CLIQUE_NODES)
    told = await _described(play, name, "GangBoarded", f"{CLIQUE_NODES} members bound in")
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert f"nvidia.com/gpu: {CLIQUE_NODES * GPUS}" in lines[lines.index("Allocated:") :]
    columns = await kube.run("-n", _NAMESPACE, "get", _KIND)
    head, row = (line.split() for line in columns.splitlines())
    shown = dict(zip(head, row, strict=True))
    [home] = {play.stage.cliques[int(c[1:])] for c in play.where(_NAMESPACE)}
    assert (shown["PHASE"], shown["BOUND"], shown["DOMAIN"]) == ("Aboard", str(CLIQUE_NODES), home)


async def test_it_goes_with_its_gang(play: Play) -> None:
    kube = play.stage.kube
    name = await _statefulset(play, "short", 2)
    await _described(play, name, "GangBoarded")
    await kube.run("-n", _NAMESPACE, "scale", "statefulset", "short", "--replicas=0")

    async def gone() -> bool:
        return not await kube.items(_KIND, _NAMESPACE)

    await until(gone, "the PodGroup is gone although its owner is not")


async def test_it_is_owned_by_what_made_its_members(play: Play) -> None:
    name = await _statefulset(play, "short", 2)
    await _described(play, name, "GangBoarded")
    [group] = await play.stage.kube.items(_KIND, _NAMESPACE)
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("StatefulSet", "short")
    assert name.endswith(owner["uid"])


async def test_one_that_is_there_is_adopted_with_conditions_alone(play: Play) -> None:
    kube = play.stage.kube
    spec = {"minMember": 2, "queue": "default-queue"}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "mine"},
        "spec": spec,
    }
    await kube.apply(_NAMESPACE, group)
    theirs = {"status": {"conditions": [{"type": "Audited", "status": "True"}]}}
    patch = ("patch", _KIND, "mine", "--subresource=status", "--type=merge", "-p", json.dumps(theirs))
    await kube.run("-n", _NAMESPACE, *patch)
    members = [member(f"rank-{i}", "", 2) for i in range(2)]
    for row in members:
        row["metadata"] = {"name": row["metadata"]["name"], "annotations": {"pod-group-name": "mine"}}
    await kube.apply(_NAMESPACE, members)
    try:
        await play.bound(_NAMESPACE, 2)
        await _described(play, "mine", "GangBoarded", "2 members bound")
        [found] = await kube.items(_KIND, _NAMESPACE)
        assert found["spec"] == spec
        assert list(found["status"]) == ["conditions"]
        assert [row["type"] for row in found["status"]["conditions"]] == ["Audited", "Gathered", "Boarded"]
    finally:
        await kube.run("-n", _NAMESPACE, "delete", _KIND, "mine")
