"""The demo's scenes, on the tests' own cluster."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from allaboard.local.cluster import Cluster
from e2e.demo import SCENES, Outcome, report
from e2e.observer import Observer
from e2e.scene import Play, Scene
from e2e.stage import Stage
from tests.e2e.conftest import playing


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(cluster: Cluster) -> AsyncIterator[tuple[Stage, Observer]]:
    async with playing(cluster) as stage:
        yield stage


@pytest.mark.cluster
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_the_scene_goes_as_promised(scene: Scene, stage: tuple[Stage, Observer]) -> None:
    told: list[str] = []
    await scene(Play(*stage, told.append))
    assert told


def test_one_failed_scene_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([Outcome("one", 1.0, ""), Outcome("two", 1.0, "AssertionError: no")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 2 scenes passed"
