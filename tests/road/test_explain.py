"""What people are told about gangs on the real control plane; the figures expected are the cluster's own."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from allaboard.local.binaries import find
from e2e.kube import until
from e2e.observer import Observer
from e2e.pods import GPUS
from e2e.scene import Play, statefulset
from e2e.stage import CLIQUE_NODES, Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

_NAMESPACE: Final = "explained"


@pytest_asyncio.fixture(loop_scope="module")
async def play(played: tuple[Stage, Observer]) -> AsyncIterator[Play]:
    """A clean namespace; afterwards the checker has no complaint."""
    stage, observer = played
    await stage.kube.namespace(_NAMESPACE)
    play = Play(stage, observer, lambda _: None)
    yield play
    play.clean(_NAMESPACE)
    await stage.kube.clear(_NAMESPACE)


async def _allaboard(play: Play, *line: str) -> tuple[int, Any]:
    """Exit code and what was printed, of a command on the running extender."""
    kubeconfig = play.stage.kube.kubeconfig
    state = kubeconfig.parent / "dev"
    command = [sys.executable, "-m", "allaboard", *line, "-o", "json"]
    process = await asyncio.create_subprocess_exec(
        *command, f"--kubeconfig={kubeconfig}", f"--state-dir={state}", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return process.returncode or 0, json.loads(out)


async def test_explain_names_what_each_clique_lacks_of_a_gang_too_large(play: Play) -> None:
    too_many = CLIQUE_NODES + 1
    await play.stage.kube.apply(_NAMESPACE, statefulset("wide", too_many))
    sentence = await play.waiting(_NAMESPACE, "GangWaiting", f"wide-{CLIQUE_NODES}")
    code, told = await _allaboard(play, "explain", f"{_NAMESPACE}/wide")
    assert (code, told["message"]) == (2, sentence)
    assert {row["domain"] for row in told["domains"]} == set(play.stage.cliques)
    assert {(row["have"], row["need"]) for row in told["domains"]} == {(CLIQUE_NODES, too_many)}


async def test_kubectl_allaboard_is_the_same_command(play: Play) -> None:
    """kubectl finds the plugin on the path, and passes arguments and exit code on."""
    kube = play.stage.kube
    await kube.apply(_NAMESPACE, statefulset("wide", CLIQUE_NODES + 1))
    await play.waiting(_NAMESPACE, "GangWaiting", "wide-0")
    state = kube.kubeconfig.parent / "dev"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    async def run(*words: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PATH": path, "KUBECONFIG": str(kube.kubeconfig)},
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    kubectl = str(find("kubectl"))
    line = ("explain", "wide", "-n", _NAMESPACE, f"--state-dir={state}")
    by_plugin = await run(kubectl, "allaboard", *line)
    assert by_plugin == await run("allaboard", *line)
    assert by_plugin[0] == 2
    assert f"Gang {_NAMESPACE}/wide is Waiting" in by_plugin[1]
    code, usage, _ = await run(kubectl, "allaboard", "explain", "--help")
    assert (code, "Usage: kubectl allaboard explain" in usage) == (0, True)


async def test_describe_explains_on_pod_and_owner_why_they_wait_and_then_that_they_are_aboard(
    play: Play,
) -> None:
    kube, too_many = play.stage.kube, CLIQUE_NODES + 1
    await kube.apply(_NAMESPACE, statefulset("wide", too_many))
    sentence = await play.waiting(_NAMESPACE, "GangWaiting", "wide-7")

    async def described(what: str, reason: str) -> str:
        told = await kube.run("-n", _NAMESPACE, "describe", *what.split("/"))
        return next((line for line in told.splitlines() if f" {reason} " in line), "")

    for what in ("pod/wide-7", "statefulset/wide"):
        assert sentence in await described(what, "GangWaiting")
    await kube.run("-n", _NAMESPACE, "scale", "statefulset", "wide", f"--replicas={CLIQUE_NODES}")
    for what in ("pod/wide-7", "statefulset/wide"):

        async def aboard(what: str = what) -> bool:
            return f"{CLIQUE_NODES} members bound in" in await described(what, "GangBoarded")

        await until(aboard, f"{what} says that the gang is aboard")


async def test_explain_and_top_agree_with_the_cluster_once_a_gang_is_aboard(play: Play) -> None:
    await play.stage.kube.apply(_NAMESPACE, statefulset("fits", 3))
    await play.bound(_NAMESPACE, 3)
    code, told = await _allaboard(play, "explain", "fits-0", "-n", _NAMESPACE)
    assert (code, told["phase"], told["bound"]) == (0, "Aboard", 3)
    _, cliques = await _allaboard(play, "top")
    assert sum(row["used"] for row in cliques if row["clique"] == told["domain"]) == 3 * GPUS
    assert sum(row["used"] + row["promised"] for row in cliques) == 3 * GPUS
    _, gangs = await _allaboard(play, "gangs", "-n", _NAMESPACE)
    assert [row["name"] for row in gangs] == [f"{_NAMESPACE}/fits"]


async def test_explain_tells_what_a_resourcequota_refuses_and_the_gang_boards_once_it_is_raised(
    play: Play,
) -> None:
    kube, wanted, admitted = play.stage.kube, 4, 3
    await kube.apply(_NAMESPACE, _quota(admitted * GPUS))
    try:
        await kube.apply(_NAMESPACE, statefulset("capped", wanted))

        async def told() -> bool:
            _, found = await _allaboard(play, "explain", "capped-0", "-n", _NAMESPACE)
            return "exceeded quota: gpus" in str(found.get("message"))

        await until(told, "the gang's sentence names the quota")
        sentence = await play.waiting(_NAMESPACE, "GangGathering", "capped-0")
        assert f"{admitted} of {wanted} members are here; waiting for 1 more Pod" in sentence
        assert "StatefulSet capped can't create it: exceeded quota: gpus" in sentence
        await kube.apply(_NAMESPACE, _quota(wanted * GPUS))
        await play.bound(_NAMESPACE, wanted, seconds=60)
    finally:
        await kube.run("-n", _NAMESPACE, "delete", "resourcequota", "gpus")


def _quota(gpus: int) -> Json:
    hard = {"requests.nvidia.com/gpu": str(gpus)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}, "spec": {"hard": hard}}
