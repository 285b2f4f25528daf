"""Replicas die, hang or drain while they have work, and its cycles go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from moorage import Node, Pod, ScorePlugin
from tests.gateway.sharing import NAMES, ByNumber, place, policy_of, same, sharing
from tools.inprocess.gateway import (
    Gate,
    Gateway,
    filter_service,
    is_open,
    pod,
    scorer_service,
)
from tools.waiting import until


@asynccontextmanager
async def two_of_each(
    tmp_path: Path, gates: dict[str, Gate], **settings: Any
) -> AsyncIterator[Gateway]:
    """Run two replicas of each kind, which see requests through gates."""
    policy = policy_of(
        tmp_path, "{filter: {enabled: [{name: NodeName}]}, score: {enabled: [{name: ByNumber}]}}"
    )
    async with AsyncExitStack() as stack:
        scorers = [
            await stack.enter_async_context(scorer_service(ByNumber, gate=gate))
            for gate in (gates.get("other scorer", is_open), gates.get("scorer", is_open))
        ]
        filters = [
            await stack.enter_async_context(filter_service(gate=gate))
            for gate in (gates.get("other filter", is_open), gates.get("filter", is_open))
        ]
        running = await stack.enter_async_context(
            sharing(tmp_path, "g", filters=filters, scorers=scorers, config=policy, **settings)
        )
        await running.node(*NAMES)
        yield running


@pytest.mark.parametrize("service", ["filter", "scorer"])
@pytest.mark.parametrize("settings", [{}, {"min_nodes_per_shard": 1000}], ids=["shards", "whole"])
async def test_a_replica_that_is_lost_with_its_work_costs_nothing(
    tmp_path: Path, service: str, settings: dict[str, Any]
) -> None:
    dies = asyncio.Event()

    async def gate(request: Any) -> bool:
        return not (dies.is_set() and request.HasField("cycle"))

    async with two_of_each(tmp_path, {service: gate}, **settings) as running:
        before = await place(running, pod("before"))
        dies.set()
        for number in range(2):  # whole cycles go to the replicas in turn
            same(await place(running, pod(f"p{number}")), before)
        lost = running.sample("moorage_cycles_resent_total", service=service, cause="lost")
        assert lost >= 1


@pytest.mark.parametrize("service", ["filter", "scorer"])
@pytest.mark.parametrize("settings", [{}, {"min_nodes_per_shard": 1000}], ids=["shards", "whole"])
async def test_a_replica_that_hangs_costs_a_moment_once(
    tmp_path: Path, service: str, settings: dict[str, Any]
) -> None:
    hangs = asyncio.Event()

    async def gate(request: Any) -> bool:
        if hangs.is_set() and request.HasField("cycle"):
            await asyncio.Event().wait()
        return True

    suspects: list[bool] = []

    async def other(request: Any) -> bool:
        if request.HasField("cycle"):
            suspects.append(request.cycle.suspect)
        return True

    gates: dict[str, Gate] = {service: gate, f"other {service}": other}
    async with two_of_each(tmp_path, gates, hedge_floor=0.5, **settings) as running:
        for number in range(12):  # enough to know how long answers take
            before = await place(running, pod(f"before-{number}"))
        assert not any(suspects)
        hangs.set()
        async with asyncio.timeout(20):  # the deadline is 48 s away
            for number in range(3):
                same(await place(running, pod(f"p{number}")), before)
        slow = running.sample("moorage_cycles_resent_total", service=service, cause="slow")
        assert slow == 1, "it gets nothing more before it has answered"
        assert any(suspects), "a plugin may be why, so the other one runs it apart"
        assert running.sample("moorage_replicas_ready", service=service) == 2


async def test_an_only_replica_that_is_lost_gets_its_work_again(tmp_path: Path) -> None:
    cycles: list[Any] = []

    async def gate(request: Any) -> bool:
        if request.HasField("cycle"):
            cycles.append(request)
        return len(cycles) != 1 or not request.HasField("cycle")

    async with (
        filter_service(gate=gate) as filters,
        scorer_service() as scorer,
        sharing(tmp_path, "g", filters=[filters], scorers=[scorer]) as running,
    ):
        await running.node("n1", "n2")
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["NodeNames"] == ["n1", "n2"]
        assert len(cycles) == 2
        lost = running.sample("moorage_cycles_resent_total", service="filter", cause="lost")
        assert lost == 1


@pytest.mark.parametrize("replicas", [1, 2])
async def test_replicas_that_hang_until_the_deadline_have_to_catch_up(
    tmp_path: Path, replicas: int
) -> None:
    hangs = True

    async def gate(request: Any) -> bool:
        if hangs and request.HasField("cycle"):
            await asyncio.Event().wait()
        return True

    async with AsyncExitStack() as stack:
        filters = [
            await stack.enter_async_context(filter_service(gate=gate)) for _ in range(replicas)
        ]
        scorer = await stack.enter_async_context(scorer_service())
        settings = {"http_timeout": 1.0, "hedge_floor": 0.1, "min_nodes_per_shard": 1000}
        running = await stack.enter_async_context(
            sharing(tmp_path, "g", filters=filters, scorers=[scorer], **settings)
        )
        await running.node("n1", "n2")
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["Error"] == "filter service does not answer in time"
        hangs = False
        opened = "moorage_sessions_opened_total"
        await until(lambda: running.sample(opened, service="filter") == 2 * replicas)
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["NodeNames"] == ["n1", "n2"]


async def not_serving(address: str) -> None:
    """Wait until a service says that it drains."""
    request = health_pb2.HealthCheckRequest()
    async with asyncio.timeout(10), grpc.aio.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        while (await stub.Check(request)).status == health_pb2.HealthCheckResponse.SERVING:  # noqa: ASYNC110 - over gRPC
            await asyncio.sleep(0.01)


async def test_a_replica_that_drains_finishes_its_work(tmp_path: Path) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    class Waits(ScorePlugin):
        async def prepare(self, pod: Pod, nodes: Any) -> None:
            asked.set()
            await release.wait()

        def score_node(self, pod: Pod, node: Node) -> float:
            return 50.0

    policy = policy_of(
        tmp_path,
        "{score: {disabled: [{name: '*'}], enabled: [{name: Waits}]}}",
        "{name: Waits, timeBudget: 30s}",
    )
    async with AsyncExitStack() as stack:
        filters = await stack.enter_async_context(filter_service())
        draining = await stack.enter_async_context(AsyncExitStack())
        scorer = await draining.enter_async_context(scorer_service(Waits, grace=10))
        running = await stack.enter_async_context(
            sharing(tmp_path, "g", filters=[filters], scorers=[scorer], config=policy)
        )
        await running.node("n1", "n2")
        placing = asyncio.create_task(place(running, pod(), ["n1", "n2"]))
        await asked.wait()
        drained = asyncio.create_task(draining.aclose())
        await not_serving(scorer)
        release.set()
        assert {each["total"] for each in (await placing)["top"].values()} == {50.0}
        await drained
        assert running.sample("moorage_cycles_resent_total", service="scorer", cause="lost") == 0
