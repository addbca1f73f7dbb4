"""What a tenant can't do to another one (SECURITY.md), on the real control plane."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import member
from e2e.scene import Play
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_VICTIM: Final = "tenant-victim"
_ATTACKER: Final = "tenant-attacker"
_FLOOR: Final = 3


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """Two namespaces, of which one is up to no good."""
    stage, observer = played
    for namespace in (_VICTIM, _ATTACKER):
        await stage.kube.namespace(namespace)
    yield Play(stage, observer, lambda _: None)
    await stage.kube.clear(_VICTIM, _ATTACKER, "others")


def _ranks(*indices: int, floor: int = _FLOOR) -> list[Json]:
    return [member(f"rank-{index}", "ranks", floor) for index in indices]


async def _gathers(play: Play, pod: str, namespace: str) -> str:
    return await play.waiting(namespace, "GangGathering", pod)


async def test_a_gang_of_the_same_name_elsewhere_neither_joins_nor_holds_up(play: Play) -> None:
    kube = play.stage.kube
    await kube.apply(_ATTACKER, _ranks(0, floor=100))
    await kube.apply(_VICTIM, _ranks(0, 1))
    assert f"2 of {_FLOOR} members are here" in await _gathers(play, "rank-0", _VICTIM)
    assert play.where(_VICTIM) == {}
    await kube.apply(_VICTIM, _ranks(2))
    await play.bound(_VICTIM, _FLOOR)
    assert play.where(_ATTACKER) == {}
    play.clean(_VICTIM)


async def test_a_gang_that_can_never_be_whole_reserves_nothing(play: Play) -> None:
    """Not a node, although it has come first and would take whole cliques."""
    kube = play.stage.kube
    everywhere = sum(len(rack) for rack in play.stage.nodes)
    crowd = [member(f"rank-{i}", "crowd", everywhere + 1) for i in range(everywhere)]
    await kube.apply(_ATTACKER, crowd)
    await _gathers(play, "rank-0", _ATTACKER)
    size = len(play.stage.nodes[0])
    await kube.apply(_VICTIM, _ranks(*range(size), floor=size))
    await play.bound(_VICTIM, size)
    play.clean(_VICTIM)


async def test_a_plan_in_a_manifest_is_taken_out_and_the_pod_waits_like_any_other(play: Play) -> None:
    """Whoever writes one himself gains nothing."""
    forged = member("rank-0", "ranks", _FLOOR)
    forged["metadata"]["annotations"]["allaboard.dev/plan"] = '{"node": "c0000-n00"}'
    await play.stage.kube.apply(_ATTACKER, forged)

    async def made() -> bool:
        return bool(await play.stage.kube.items("pods", _ATTACKER))

    await until(made, "the Pod is there")
    [pod] = await play.stage.kube.items("pods", _ATTACKER)
    assert "allaboard.dev/plan" not in pod["metadata"]["annotations"]
    assert pod["spec"]["schedulingGates"] == [{"name": "allaboard.dev/boarding"}]
