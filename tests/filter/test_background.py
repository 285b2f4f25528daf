"""What fails in the background of plugins shows at the service that runs them."""

import asyncio
import re
from typing import Any

import aiohttp
import grpc.aio

from moorage import FilterPlugin
from moorage.v1 import replica_pb2
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from moorage_host.plugins.registry import Registry
from moorage_host.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    encode_effective,
)
from moorage_host.rpc.serve import running
from moorage_host.rpc.settings import CycleSettings
from services.filter.servicer import filter_service
from tests.host.rpc.support import settings
from tests.passing import Passes


class FailsBehind(Passes):
    """Works at nodes, and fails in the background."""

    async def start(self) -> None:
        self.background(self._poll)

    async def _poll(self) -> None:
        raise OSError("no server")


PLUGIN = EffectivePlugin(name="FailsBehind", failure_policy="Abort", time_budget_seconds=1)
POLICY = EffectivePolicy(profiles=(EffectiveProfile(name="m", plugins=(PLUGIN,)),))
PROBLEM = r"_poll failed (once|\d+ times), \S+ ago: OSError: no server \(tests/\S+\.py:\d+\)"


async def test_readyz_metrics_and_list_plugins_show_failures_in_the_background() -> None:
    definition = filter_service(CycleSettings(), Registry(FilterPlugin, [FailsBehind]))
    async with running(definition, settings()) as service, aiohttp.ClientSession() as session:
        assert "notes" not in await get(session, service.admin)
        await service.servicer.host.use("r1", encode_effective(POLICY))
        async with asyncio.timeout(30):
            while "notes" not in (answer := await get(session, service.admin)):
                pass
        assert answer["status"] == "degraded", "it works all the same"
        (note,) = answer["notes"]
        assert re.fullmatch(f"plugin FailsBehind: {PROBLEM}", note["note"])
        async with session.get(f"http://{service.admin}/metrics") as metrics:
            counted = f'moorage_background_failures_total{{plugin="{FailsBehind.name}"}}'
            assert counted in await metrics.text()
        async with grpc.aio.insecure_channel(service.grpc) as channel:
            stub: Any = ReplicaServiceStub(channel)
            (listed,) = (await stub.ListPlugins(replica_pb2.ListPluginsRequest())).plugins
        assert re.fullmatch(PROBLEM, listed.background_problem)


async def get(session: aiohttp.ClientSession, admin: str) -> Any:
    async with session.get(f"http://{admin}/readyz") as response:
        assert response.status == 200
        return await response.json()
