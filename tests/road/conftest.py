"""`allaboard dev` on the tests' cluster, one for all tests of a module."""

from collections.abc import AsyncIterator

import pytest_asyncio

from allaboard.local.cluster import Cluster
from e2e.observer import Observer
from e2e.stage import Stage
from tests.e2e.conftest import playing


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(cluster: Cluster) -> AsyncIterator[tuple[Stage, Observer]]:
    """A stage and the checker that watches over it."""
    async with playing(cluster) as stage:
        yield stage
