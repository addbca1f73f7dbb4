"""Makes CRDs and default objects that are missing (rule 16: create if absent, never update)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog
import yaml

from allaboard.errors import UserError
from extender.api import Api, ApiError, Json

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COLLECTIONS: Final = {
    "CustomResourceDefinition": _CRDS,
    "Topology": "/apis/kai.scheduler/v1alpha1/topologies",
    "Queue": "/apis/scheduling.run.ai/v2/queues",
}
_SERVED_SECONDS: Final = 30.0

log = structlog.get_logger(__name__)


async def install(api: Api) -> None:
    """Create what is absent and wait until the CRDs are served. Raises UserError or ApiError."""
    crds = list(shipped("crds"))
    for obj in crds:
        await _create_if_absent(api, obj)
    try:
        async with asyncio.timeout(_SERVED_SECONDS):
            for obj in crds:
                await _served(api, obj)
    except TimeoutError:
        names = ", ".join(obj["metadata"]["name"] for obj in crds)
        raise UserError(f"CustomResourceDefinitions are not served after 30 s: {names}") from None
    for obj in shipped("defaults"):
        await _create_if_absent(api, obj)


def shipped(folder: str) -> Iterator[Json]:
    """The objects that we bring along: "crds" or "defaults"."""
    for file in sorted((_manifests() / folder).glob("*.yaml")):
        yield from (obj for obj in yaml.safe_load_all(file.read_text()) if obj)


def _manifests() -> Path:
    """In a wheel the manifests lie inside this package, in a checkout beside it."""
    package = Path(__file__).parents[1]
    inside = package / "manifests"
    return inside if inside.is_dir() else package.parent / "manifests"


async def _create_if_absent(api: Api, obj: Json) -> None:
    collection, name = _COLLECTIONS[obj["kind"]], obj["metadata"]["name"]
    if await api.get(f"{collection}/{name}") is not None:
        return
    try:
        await api.create(collection, obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    else:
        log.info("created", kind=obj["kind"], name=name)


async def _served(api: Api, crd: Json) -> None:
    """Return once objects of this kind can be read: a definition is Established a moment before that."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    paths = [f"/apis/{group}/{v['name']}/{plural}" for v in crd["spec"]["versions"] if v["served"]]
    while True:
        if all([await _readable(api, path) for path in paths]):
            return
        await asyncio.sleep(0.1)


async def _readable(api: Api, path: str) -> bool:
    try:
        return await api.get(path, {"limit": "1"}) is not None
    except ApiError as error:
        if error.status == 429:  # "storage is (re)initializing"
            return False
        raise
