"""Replicas are slow, die, hang or drain while they have work, and its cycles go on."""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from cli.up.processes import free_ports
from gateway.replicas.crashes import LOST_AGAIN
from gateway.replicas.latency import ENOUGH, LatencyTracker
from gateway.replicas.sharding import Sharding
from gateway.settings import GatewaySettings
from moorage import Node, Pod, ScorePlugin
from tests.gateway.sharing import NAMES, ByNumber, place, same, sharing
from tools.inprocess.gateway import (
    Gate,
    Gateway,
    Held,
    Options,
    filter_service,
    is_open,
    pod,
    policy_of,
    replicas_are,
    scorer_service,
)
from tools.waiting import until

KINDS = ("filter", "scorer")
NAMED_AND_NUMBERED = policy_of(
    "{filter: {enabled: [{name: NodeName}]}, score: {enabled: [{name: ByNumber}]}}"
)


WORKS = pytest.mark.parametrize(
    ("service", "settings"),
    [("filter", {}), ("scorer", {}), ("scorer", {"min_shard_time": 1000.0})],
    ids=["shards of a filter", "shards of a scorer", "whole cycles"],
)


def two_of_each(
    tmp_path: Path, gates: dict[str, Gate], **settings: Any
) -> AbstractAsyncContextManager[Gateway]:
    """Run two replicas of each kind, which see requests through gates."""
    of = {f"{k}_gates": [gates.get(f"other {k}", is_open), gates.get(k, is_open)] for k in KINDS}
    options: Options = {"policy": NAMED_AND_NUMBERED, "nodes": NAMES, **of, **settings}
    return sharing(tmp_path, ByNumber, **options)


@WORKS
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


@WORKS
async def test_a_replica_that_hangs_costs_a_moment_once(
    tmp_path: Path, service: str, settings: dict[str, Any]
) -> None:
    hangs = asyncio.Event()

    async def gate(request: Any) -> bool:
        if hangs.is_set() and request.HasField("cycle"):
            await asyncio.Event().wait()
        return True

    async with two_of_each(tmp_path, {service: gate}, hedge_floor=0.5, **settings) as running:
        for number in range(12):  # enough to know how long answers take
            before = await place(running, pod(f"before-{number}"))
        hangs.set()
        async with asyncio.timeout(20):  # the deadline is 48 s away
            for number in range(3):
                same(await place(running, pod(f"p{number}")), before)
        slow = running.sample("moorage_cycles_resent_total", service=service, cause="slow")
        assert slow == 1, "it gets nothing more before it has answered"
        assert running.sample("moorage_replicas_ready", service=service) == 2


@pytest.mark.parametrize("replicas", [1, 2])
async def test_replicas_that_hang_until_the_deadline_have_to_catch_up(
    tmp_path: Path, replicas: int
) -> None:
    hangs = True

    async def gate(request: Any) -> bool:
        if hangs and request.HasField("cycle"):
            await asyncio.Event().wait()
        return True

    gates = (gate,) * replicas
    settings: Options = {"http_timeout": 1.0, "hedge_floor": 0.1, "min_shard_time": 1000.0}
    async with sharing(tmp_path, nodes=("n1", "n2"), filter_gates=gates, **settings) as running:
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["Error"] == "filter service does not answer in time"
        hangs = False
        opened = "moorage_sessions_opened_total"
        await until(lambda: running.sample(opened, service="filter") == 2 * replicas)
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["NodeNames"] == ["n1", "n2"]


async def test_a_pod_that_may_crash_replicas_is_asked_of_one_at_a_time(tmp_path: Path) -> None:
    held = Held()
    first, second = free_ports(2)
    addresses = f"127.0.0.1:{first}", f"127.0.0.1:{second}"
    settings: Options = {"http_timeout": 1.0, "hedge_floor": 0.1, "min_shard_time": 1000.0}
    nodes: Options = {"nodes": ("n1", "n2"), "filters": addresses, "waits": False}
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(sharing(tmp_path, **nodes, **settings))

        async def ready(count: int) -> None:
            await until(lambda: running.sample("moorage_replicas_ready", service="filter") == count)

        async with filter_service(port=first, gate=held):
            await ready(1)
            call = asyncio.create_task(running.filter(pod(), "n1", "n2"))
            await until(lambda: held.came)
        await stack.enter_async_context(filter_service(port=first, gate=held))  # another process
        assert "Error" in await call
        await stack.enter_async_context(filter_service(port=second, gate=held))
        await ready(2)
        held.came.clear()
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["Error"] == "filter service does not answer in time"
        assert len(held.came) == 1


LOST_TWICE = f"filter service: {LOST_AGAIN}; it is not known yet why"
LATE = "filter service does not answer in time"


@pytest.mark.parametrize(
    ("known_seconds", "timeout", "gets", "errors"),
    [
        pytest.param(0.05, 60.0, 2, [LOST_TWICE] * 2, id="it is not known why two were lost"),
        pytest.param(60.0, 1.0, 1, [LATE], id="there is no time left for the next"),
    ],
)
async def test_a_pod_that_took_replicas_along_gets_no_further_ones(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known_seconds: float,
    timeout: float,
    gets: int,
    errors: list[str],
) -> None:
    monkeypatch.setattr("gateway.replicas.crashes.KNOWN_SECONDS", known_seconds)
    gates = {port: Held() for port in free_ports(gets + 1)}
    addresses = tuple(f"127.0.0.1:{port}" for port in gates)
    settings: Options = {"http_timeout": timeout, "min_shard_time": 1000.0, "waits": False}
    async with AsyncExitStack() as stack:
        nodes: Options = {"nodes": ("n1", "n2"), "filters": addresses}
        running = await stack.enter_async_context(sharing(tmp_path, **nodes, **settings))
        services = {port: await stack.enter_async_context(AsyncExitStack()) for port in gates}
        for port, service in services.items():
            await service.enter_async_context(filter_service(port=port, gate=gates[port]))
        await replicas_are(running, "filter", len(gates))
        call = asyncio.create_task(running.filter(pod(), "n1", "n2"))
        ended: list[int] = []

        def asked() -> list[int]:
            return [port for port in gates if gates[port].came and port not in ended]

        for _ in range(gets):
            await until(asked)
            ended += asked()
            await services[ended[-1]].aclose()
        answers = [await call] + [await running.filter(pod(), "n1", "n2") for _ in errors[1:]]
        assert [answer["Error"] for answer in answers] == errors
        assert not asked(), "the others live on for other pods"


async def test_a_replica_that_drains_finishes_its_work(tmp_path: Path) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    class Waits(ScorePlugin):
        async def prepare(self, pod: Pod, nodes: Any) -> None:
            asked.set()
            await release.wait()

        def score_node(self, pod: Pod, node: Node) -> float:
            return 50.0

    policy = policy_of(
        "{score: {disabled: [{name: '*'}], enabled: [{name: Waits}]}}",
        "{name: Waits, timeBudget: 30s}",
    )
    async with AsyncExitStack() as stack:
        draining = await stack.enter_async_context(AsyncExitStack())
        scorer = [await draining.enter_async_context(scorer_service(Waits, grace=10))]
        options: Options = {"policy": policy, "nodes": ("n1", "n2"), "scorer": scorer}
        running = await stack.enter_async_context(sharing(tmp_path, **options))
        placing = asyncio.create_task(place(running, pod(), ["n1", "n2"]))
        await asked.wait()
        with capture_logs() as logs:
            drained = asyncio.create_task(draining.aclose())
            await until(lambda: any(each["event"] == "The service drains" for each in logs))
        release.set()
        assert {each["total"] for each in (await placing)["top"].values()} == {50.0}
        await drained
        assert running.sample("moorage_cycles_resent_total", service="scorer", cause="lost") == 0


SORT = ("moorage", "")


def limits(**more: Any) -> GatewaySettings:
    known = {
        "min_shard_time": 0.005,
        "hedge_quantile": 0.95,
        "hedge_factor": 3.0,
        "hedge_floor": 0.05,
    }
    return GatewaySettings(**{**known, **more})


@pytest.mark.parametrize(
    ("nodes", "replicas", "microseconds", "shards"),
    [
        pytest.param(5000, 3, 10, 3, id="50 ms are worth three"),
        pytest.param(5000, 1, 10, 1, id="one replica"),
        pytest.param(5000, 0, 10, 1, id="none without work: the first to be done gets all"),
        pytest.param(5000, 9, 3, 3, id="15 ms make three of 5 ms"),
        pytest.param(5000, 3, 1.9, 1, id="9.5 ms are not two of 5 ms"),
        pytest.param(250, 9, 1000, 2, id="250 nodes are two of 100"),
        pytest.param(99, 9, 1000, 1, id="too few nodes"),
    ],
)
def test_shards_are_as_many_as_are_worth_their_messages(
    nodes: int, replicas: int, microseconds: float, shards: int
) -> None:
    sharding = Sharding(limits())
    assert sharding.count(SORT, 5000, 3) == 1, "what is not known yet is not scattered"
    sharding.observe(SORT, 1000, 1000 * microseconds / 1e6)
    assert sharding.count(SORT, nodes, replicas) == shards


def test_the_newest_cycles_count_most_and_each_by_its_nodes() -> None:
    sharding = Sharding(limits())
    for _ in range(50):
        sharding.observe(SORT, 99, 10.0)  # never scattered, so it says nothing
        sharding.observe(SORT, 100, 0.00052)  # mostly fixed costs
    assert sharding.count(SORT, 5000, 9) == 5
    sharding.observe(SORT, 5000, 0.001)
    assert sharding.count(SORT, 5000, 9) == 1
    for _ in range(50):
        sharding.observe(SORT, 5000, 0.0502)
    assert sharding.count(SORT, 5000, 9) == 9


def test_an_answer_is_late_when_nearly_all_came_much_sooner() -> None:
    tracker = LatencyTracker(limits())
    for milliseconds in range(1, 101):
        tracker.observe(SORT, 1000, milliseconds / 1000)
    assert tracker.hedge_delay(SORT, 1000, 5) == pytest.approx(3 * 0.096)
    assert tracker.hedge_delay(SORT, 2000, 5) == pytest.approx(6 * 0.096)
    assert tracker.hedge_delay(SORT, 10, 5) == 0.05, "never sooner than the floor"
    fresh = LatencyTracker(limits())
    for _ in range(ENOUGH):
        assert fresh.hedge_delay(SORT, 1000, 4) == 1, "without experience a quarter of the time"
        fresh.observe(SORT, 1, 0.002)
    assert fresh.hedge_delay(SORT, 100, 4) == 0.05, "few nodes are not taken for slow ones"
    assert fresh.hedge_delay(SORT, 5000, 4) == pytest.approx(3 * 0.1)
