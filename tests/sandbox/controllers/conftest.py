"""One cluster with running controllers for each test."""

from collections.abc import AsyncIterator

import pytest

from sandbox.apiserver import ApiServer, Settings
from sandbox.controllers import Controllers
from tests.sandbox.controllers.support import Workloads


@pytest.fixture
async def workloads() -> AsyncIterator[Workloads]:
    settings = Settings(run_bound_pods=True, run_delay_seconds=0.01)
    async with ApiServer(settings) as server:
        Controllers(server.cluster)
        workloads = Workloads(server)
        workloads.api.node("n1")
        yield workloads
