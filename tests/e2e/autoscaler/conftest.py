"""One real control plane with one Karpenter for all tests of this folder."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.autoscaler.karpenter import Cluster
from tests.scenarios.world import World, profiles
from tools.planes.real import RealPlane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    plane = RealPlane(tmp_path_factory.mktemp("autoscaler"), "WatchList=false", profiles=profiles())
    async with (
        World.started(plane, through_proxy=False) as world,
        world.scheduler("heated", "heated-gangs"),
    ):
        cluster = Cluster(world)
        async with cluster.running():
            yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(running: Cluster) -> AsyncIterator[Cluster]:
    """A cluster with a NodePool, without nodes and pods before and after."""
    await running.pool()
    try:
        yield running
    finally:
        await running.reset()
