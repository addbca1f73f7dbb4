"""CRDs and default objects are created where they are absent, and never touched where they are there."""

from pathlib import Path

import pytest

from allaboard.dev.install import install
from extender.api import Api
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOPOLOGY = "/apis/kai.scheduler/v1alpha1/topologies/nvcf-mnnvl-topology"
QUEUE = "/apis/scheduling.run.ai/v2/queues/default-queue"


async def versions(api: Api) -> dict[str, str]:
    """Resource versions of everything that install would make."""
    paths = [TOPOLOGY, QUEUE, f"{CRDS}/topologies.kai.scheduler", f"{CRDS}/queues.scheduling.run.ai"]
    found = {path: await api.get(path) for path in paths}
    return {path: obj["metadata"]["resourceVersion"] for path, obj in found.items() if obj}


async def test_what_others_made_of_an_object_stays_and_what_they_deleted_comes_back(api: Api) -> None:
    await install(api)
    theirs = {"spec": {"levels": [{"nodeLabel": "example.com/rack"}]}}
    await api.delete(TOPOLOGY)
    await api.create(Path(TOPOLOGY).parent.as_posix(), _topology() | theirs)
    await api.delete(QUEUE)
    try:
        await install(api)
        kept, back = await api.get(TOPOLOGY), await api.get(QUEUE)
        assert kept is not None
        assert kept["spec"] == theirs["spec"]
        assert back is not None
    finally:
        await api.delete(TOPOLOGY)
        await install(api)


async def test_a_second_time_changes_nothing(api: Api) -> None:
    await install(api)
    before = await versions(api)
    assert len(before) == 4
    await install(api)
    assert await versions(api) == before


async def test_a_definition_that_is_new_is_waited_for(api: Api) -> None:
    name = f"{CRDS}/topologies.kai.scheduler"
    await api.delete(name)

    async def gone() -> bool:
        return await api.get(name) is None

    await eventually(gone)
    await install(api)
    assert await api.get(TOPOLOGY) is not None


def _topology() -> dict[str, object]:
    meta = {"name": "nvcf-mnnvl-topology"}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": meta}
