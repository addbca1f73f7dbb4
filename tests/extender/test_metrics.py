"""What /metrics says is what memory holds, and what the catalogue promises."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from extender.freshness import LIMIT_SECONDS, Freshness
from extender.journal import Outcome
from extender.metrics import Gauges, Meters, endpoint
from extender.views import Phase, Views
from gangs import figures
from gangs.figures import EXTENDER, Figure
from tests.builders import make_loose, make_pod
from tests.extender.world import World, gang

PODS = "/api/v1/pods"

Found = dict[tuple[str, ...], float]


@dataclass
class Scraped:
    """A world whose figures can be read."""

    world: World
    freshness: Freshness
    meters: Meters
    client: TestClient[web.Request, web.Application]

    async def text(self) -> str:
        return await (await self.client.get("/metrics")).text()

    async def figures(self) -> Found:
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(await self.text())
            for sample in family.samples
        }


@pytest.fixture
async def scraped() -> AsyncIterator[Scraped]:
    world = World({"a": 4, "b": 4})
    freshness, meters = Freshness(world.clock), Meters(world.registry)
    world.store.journal.listeners.append(meters.follow)
    views = Views(world.registry, world.room, world.store, world.rounds, world.news)
    gauges = Gauges(world.store, world.rounds, freshness, views, lambda: True, world.clock, rebuilt=7)
    app = web.Application(middlewares=[meters.timed])
    app.router.add_get("/metrics", endpoint(gauges, meters))
    app.router.add_post("/filter", _answered)
    async with TestClient(TestServer(app)) as client:
        yield Scraped(world, freshness, meters, client)


async def _answered(_: web.Request) -> web.Response:
    return web.Response()


async def test_prometheus_reads_the_figures_of_this_moment(scraped: Scraped) -> None:
    world = scraped.world
    scraped.freshness.heard(PODS)
    world.clock.advance(LIMIT_SECONDS + 1)
    world.board(*gang(3))
    world.board(*[make_loose(f"squatter-{i}", node=f"b{i}") for i in range(3)], *gang(3, "big"))
    world.update(make_pod("free", gang="free", floor=2, gated=False))
    world.round()
    world.clock.advance(5)
    found = await scraped.figures()
    assert found["allaboard_watch_age_seconds", "pods"] == LIMIT_SECONDS + 6
    assert found[("allaboard_cache_stale",)] == found[("allaboard_leader",)] == 1
    assert found[("allaboard_promised_pods",)] == 3
    assert found["allaboard_waiting_gangs", "GangWaiting"] == 1
    assert found["allaboard_waiting_gangs", "GangGathering"] == 1
    assert found[("allaboard_ungated_waiting_pods",)] == 1
    assert found[("allaboard_rebuild_seconds",)] == 7
    assert found[("allaboard_oldest_boarding_seconds",)] == 5
    assert {phase: found["allaboard_gangs", phase] for phase in figures.PHASES} == {
        "Gathering": 1,
        "Waiting": 1,
        "Granted": 1,
        "Boarding": 0,
        "Aboard": 0,
    }


async def test_free_gpus_in_a_clique_that_is_partly_taken_are_fragmented(scraped: Scraped) -> None:
    scraped.world.update(make_loose("squatter", gpus=1, node="a0"))
    found = await scraped.figures()
    assert {state: found["allaboard_gpus", state] for state in figures.GPU_STATES} == {
        "used": 1,
        "promised": 0,
        "free": 31,
        "fragmented": 15,
    }


async def test_boardings_are_counted_by_how_they_ended_and_how_long_they_took(scraped: Scraped) -> None:
    world, pods = scraped.world, gang(3)
    world.update(*pods[:2])
    world.clock.advance(100)
    world.update(pods[2])
    world.clock.advance(10)
    world.round()
    world.clock.advance(5)
    world.bind(*pods)
    refused = gang(2, "refused")
    world.board(*refused)
    world.store.lose(world.registry.pods["u-refused-0"], "no disk")
    found = await scraped.figures()
    counts = {result: found["allaboard_boardings_total", result] for result in figures.RESULTS}
    assert counts == {"granted": 2, "boarded": 1, "cancelled": 1, "expired": 0}
    assert found[("allaboard_boarding_seconds_sum",)] == 5
    assert found[("allaboard_time_to_board_seconds_sum",)] == 15
    assert found[("allaboard_oldest_boarding_seconds",)] == 0


async def test_the_answers_to_kube_scheduler_are_timed_and_no_other_path_makes_a_series(
    scraped: Scraped,
) -> None:
    await scraped.client.post("/filter")
    await scraped.client.post("/no-such-verb")
    found = await scraped.figures()
    assert found["allaboard_verb_seconds_count", "filter"] == 1
    assert "no-such-verb" not in await scraped.text()


async def test_what_is_served_is_what_the_catalogue_says(scraped: Scraped) -> None:
    families = {family.name: family for family in text_string_to_metric_families(await scraped.text())}
    assert set(families) == {_family(figure) for figure in EXTENDER}
    for figure in EXTENDER:
        family = families[_family(figure)]
        assert (family.type, family.documentation) == (figure.kind.value, figure.text)
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        assert labels <= {figure.label}
        if figure.values:
            values = {sample.labels[figure.label] for sample in family.samples}
            assert values == set(figure.values)


def _family(figure: Figure) -> str:
    return figure.name.removesuffix("_total")


def test_names_are_as_prometheus_wants_them() -> None:
    for figure in (*EXTENDER, *figures.WEBHOOK):
        assert figure.name.startswith("allaboard_")
        assert figure.name.endswith("_total") == (figure.kind is figures.Kind.COUNTER)
        assert figure.name.endswith("_seconds") or figure.kind is not figures.Kind.HISTOGRAM


def test_phases_and_results_are_those_that_there_are() -> None:
    assert tuple(map(str, Phase)) == figures.PHASES
    assert tuple(map(str, Outcome)) == figures.RESULTS
