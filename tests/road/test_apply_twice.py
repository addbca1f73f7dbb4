"""Every example can be applied again, client-side and server-side, and nothing changes."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.kube import Kube
from e2e.observer import Observer
from e2e.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

_EXAMPLES: Final = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
_CRDS: Final = Path(__file__).parent / "crds.yaml"
_NAMESPACE: Final = "twice"


@pytest.mark.parametrize("way", ["client-side", "server-side"])
@pytest.mark.parametrize("example", _EXAMPLES, ids=lambda path: path.stem)
async def test_applying_again_changes_nothing(
    example: Path, way: str, played: tuple[Stage, Observer]
) -> None:
    kube = played[0].kube
    namespace = f"{_NAMESPACE}-{way}"
    await kube.namespace(namespace)
    await kube.run("apply", "-f", str(_CRDS))
    await kube.run("wait", "--for=condition=Established", "-f", str(_CRDS))
    arguments = [
        "-n",
        namespace,
        "apply",
        "-f",
        str(example),
        f"--server-side={way == 'server-side'}".lower(),
    ]
    await kube.run(*arguments)
    before = await _written(kube, namespace, example)
    said = await kube.run(*arguments)
    assert await _written(kube, namespace, example) == before
    if way == "client-side":
        assert {line.rsplit(" ", 1)[-1] for line in said.splitlines()} == {"unchanged"}
    await kube.clear(namespace)


async def _written(kube: Kube, namespace: str, example: Path) -> list[tuple[Any, ...]]:
    """What people have written of each object, and how often that has changed."""
    found = json.loads(await kube.run("-n", namespace, "get", "-f", str(example), "-o", "json"))
    items = found["items"] if found["kind"] == "List" else [found]
    return [
        (i["metadata"]["name"], i["metadata"]["generation"], i["metadata"].get("annotations"), i["spec"])
        for i in items
    ]
