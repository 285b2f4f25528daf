"""One cluster with running controllers for each test."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sandbox.apiserver import ApiServer, Settings
from sandbox.controllers import Controllers
from tests.sandbox.controllers.support import Workloads


@pytest.fixture
async def workloads() -> AsyncIterator[Workloads]:
    settings = Settings(run_bound_pods=True, run_delay_seconds=0.01)
    async with ApiServer(settings) as server, asyncio.TaskGroup() as group:
        controllers = group.create_task(Controllers(server.cluster).run())
        workloads = Workloads(server)
        workloads.api.node("n1")
        yield workloads
        controllers.cancel()
