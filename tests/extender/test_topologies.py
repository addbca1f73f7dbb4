"""Notes about a Topology that did not exist at admission are lifted when it does."""

import pytest

from extender.topologies import PATH, Topologies
from gangs.notes import Note
from tests.builders import CLIQUE, Json
from tests.extender.world import FakeApi

NOTE = Note("no Topology racks", blocking=True, topology="racks", level=CLIQUE)


def topology(name: str, *levels: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": level} for level in levels]}}


def serving(*items: Json) -> FakeApi:
    return FakeApi(objects={PATH: {"items": list(items)}})


@pytest.mark.parametrize(
    ("items", "lifted"),
    [
        ([topology("racks", "zone", CLIQUE)], True),
        ([topology("racks", "zone")], False),
        ([topology("other", CLIQUE)], False),
        ([], False),
    ],
)
async def test_a_note_is_lifted_by_its_topology_with_its_level(items: list[Json], lifted: bool) -> None:
    topologies = Topologies(serving(*items))
    await topologies.refresh()
    assert topologies.lifted(NOTE) == lifted


async def test_a_note_about_anything_else_is_never_lifted() -> None:
    topologies = Topologies(serving(topology("", CLIQUE), topology("racks", "")))
    await topologies.refresh()
    assert not topologies.lifted(Note("bad number", blocking=True))


async def test_it_is_told_whether_anything_changed() -> None:
    api = serving()
    topologies = Topologies(api)
    assert not await topologies.refresh()
    api.objects[PATH] = {"items": [topology("racks", CLIQUE)]}
    assert await topologies.refresh()
    assert not await topologies.refresh()


async def test_what_is_known_stays_while_the_api_server_is_away() -> None:
    api = serving(topology("racks", CLIQUE))
    topologies = Topologies(api)
    await topologies.refresh()
    api.fail(PATH, 0)
    assert not await topologies.refresh()
    assert topologies.lifted(NOTE)


async def test_a_cluster_without_the_kind_has_no_topologies() -> None:
    topologies = Topologies(FakeApi())
    assert not await topologies.refresh()
    assert not topologies.lifted(NOTE)
