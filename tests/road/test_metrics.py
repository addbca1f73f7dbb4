"""What Prometheus would scrape of the running parts, against what the cluster holds."""

import json
import ssl
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from e2e.observer import Observer
from e2e.pods import GPUS
from e2e.scene import Play, statefulset
from e2e.stage import CLIQUE_NODES, Stage
from gangs.figures import EXTENDER, WEBHOOK, Figure

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

_NAMESPACE: Final = "measured"

Found = dict[tuple[str, ...], float]


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE)


async def _scrape(play: Play, part: str) -> tuple[set[str], Found]:
    """Families and samples of a part."""
    ports = json.loads((play.stage.kube.kubeconfig.parent / "dev" / "ports.json").read_text())
    scheme = "https" if part == "webhook" else "http"
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    url = f"{scheme}://127.0.0.1:{ports[part]}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=unverified) as answer:
        families = list(text_string_to_metric_families(await answer.text()))
    found = {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
    return {family.name for family in families}, found


def _names(catalogue: tuple[Figure, ...]) -> set[str]:
    return {figure.name.removesuffix("_total") for figure in catalogue}


async def test_a_boarding_is_seen_in_the_figures_of_extender_and_webhook(play: Play) -> None:
    _, before = await _scrape(play, "extender")
    _, reviews = await _scrape(play, "webhook")
    await play.stage.kube.apply(_NAMESPACE, statefulset("llm", 3))
    await play.bound(_NAMESPACE, 3)
    names, after = await _scrape(play, "extender")
    assert names == _names(EXTENDER)
    whole = len(play.stage.cliques) * CLIQUE_NODES * GPUS
    assert after["allaboard_gpus", "used"] == 3 * GPUS
    assert after["allaboard_gpus", "fragmented"] == (CLIQUE_NODES - 3) * GPUS
    assert after["allaboard_gpus", "free"] >= whole - 3 * GPUS  # nodes of no clique have some, too
    assert after["allaboard_gangs", "Aboard"] == 1
    rises = {
        ("allaboard_boardings_total", "granted"): 1,
        ("allaboard_boardings_total", "boarded"): 1,
        ("allaboard_boardings_total", "expired"): 0,
        ("allaboard_time_to_board_seconds_count",): 1,
        ("allaboard_verb_seconds_count", "bind"): 3,
    }
    assert {key: after[key] - before[key] for key in rises} == rises
    assert 0 < after[("allaboard_rebuild_seconds",)] < 60
    assert max(v for key, v in after.items() if key[0] == "allaboard_watch_age_seconds") < 120
    names, seen = await _scrape(play, "webhook")
    assert names == _names(WEBHOOK)
    patched = "allaboard_admission_seconds_count", "patched"
    assert seen[patched] - reviews[patched] == 3
