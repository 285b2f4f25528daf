"""Gateways die, hang, change places and contradict each other, and no claim is violated."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from cli.up.processes import free_ports
from tests.scenarios.world import World
from tools.planes.embedded import Object, answers
from tools.planes.moorage import HOST
from tools.planes.objects import NAMESPACE, node, pod
from tools.planes.programs import Program, stop_all

HOLD_SECONDS = 4.0

LEASE = ("--leader-election=lease", "--lease-duration=2s")
"""A Lease that is taken over fast."""


class Gateway:
    """One of several gateways."""

    def __init__(self, world: World, name: str, options: Sequence[str], *, starts_ready: bool):
        extender, admin = free_ports(2)
        self.extender, self.admin = f"http://{HOST}:{extender}", f"http://{HOST}:{admin}"
        usual = world.services.programs["gateway"]
        changed = (f"--extender-port={extender}", f"--admin-port={admin}", *options)
        probe = "readyz" if starts_ready else "livez"
        self.program: Program = replace(
            usual,
            name=name,
            command=[*usual.command, *changed],
            log=usual.log.with_name(f"{name}.log"),
            ready=lambda: answers(f"{self.admin}/{probe}"),
            _process=None,
        )

    async def is_ready(self) -> bool:
        return await answers(f"{self.admin}/readyz")


class Front:
    """Passes calls on to a gateway, and notes which failed.

    Attributes:
        url: Where kube-scheduler calls.
        calls: How many came.
        failed: What callers got other than an answer.
        leaving: Gateways that got SIGTERM: others that are ready go first.
    """

    def __init__(self, choose: Callable[[], Gateway | None], hold: float = HOLD_SECONDS) -> None:
        """Ask *choose* for a gateway, for so many seconds at most."""
        self.url = ""
        self.calls = 0
        self.failed: list[str] = []
        self.leaving: list[Gateway] = []
        self._choose = choose
        self._hold = hold

    async def start(self, stack: AsyncExitStack) -> None:
        self._session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/{verb}", self._pass)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, HOST, 0).start()
        self.url = f"http://{HOST}:{runner.addresses[0][1]}"

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.calls += 1
        loop = asyncio.get_running_loop()
        end, problem = loop.time() + self._hold, "no gateway is ready"
        while True:
            gateway = self._choose()
            if gateway is not None:
                try:
                    async with self._session.post(
                        gateway.extender + request.path,
                        data=body,
                        headers={"Content-Type": "application/json"},
                    ) as answer:
                        text = await answer.read()
                        if b'"Error":"' in text and b'"Error":""' not in text:
                            self.failed.append(f"{request.path}: {text[:200]!r}")
                        return web.Response(
                            status=answer.status, body=text, content_type="application/json"
                        )
                except aiohttp.ClientConnectorError as error:  # as before: nothing was sent
                    problem = str(error)
                except aiohttp.ClientError as error:
                    self.failed.append(f"{request.path}: {error!r}")
                    return web.Response(status=502)
            if loop.time() >= end:
                break
            await asyncio.sleep(0.02)
        self.failed.append(f"{request.path}: {problem}")
        return web.Response(status=503)


@asynccontextmanager
async def gateways(
    world: World, count: int, *options: str, starts_ready: bool = True
) -> AsyncIterator[list[Gateway]]:
    """Run gateways beside the usual one, on the same services."""
    all_ = [
        Gateway(world, f"gateway-{i + 1}", options, starts_ready=starts_ready) for i in range(count)
    ]
    for each in all_:
        each.program.log.write_bytes(b"")
        world.schedulers[each.program.name] = each.program
    try:
        for each in all_:
            await each.program.start()
        yield all_
    finally:
        await stop_all([each.program for each in all_])
        for each in all_:
            del world.schedulers[each.program.name]
        await _lead_again(world)


async def _lead_again(world: World) -> None:
    """Have the usual gateway begin a term, as it does when the binder refuses its first bind."""
    nobody = {"PodName": "nobody", "PodNamespace": NAMESPACE, "PodUID": "nobody", "Node": "none"}

    async def leads() -> bool:
        url = f"{world.services.extender}/bind"
        async with aiohttp.ClientSession() as session, session.post(url, json=nobody) as answer:
            return "epoch" not in await answer.text()

    await world.until(leads)


@asynccontextmanager
async def before(
    choose: Callable[[], Gateway | None], hold: float = HOLD_SECONDS
) -> AsyncIterator[Front]:
    """Run what passes calls on to the chosen gateway; without one, calls wait *hold* seconds."""
    async with AsyncExitStack() as stack:
        front = Front(choose, hold)
        await front.start(stack)
        yield front


@asynccontextmanager
async def service(all_: Sequence[Gateway], hold: float = HOLD_SECONDS) -> AsyncIterator[Front]:
    """Pass calls on to the gateway that is ready, as a Service does; *hold* as in `before`."""
    ready: list[Gateway] = []

    async def probe() -> None:
        while True:
            ready[:] = [each for each in all_ if await each.is_ready()]
            await asyncio.sleep(0.05)

    def is_leaving(gateway: Gateway) -> bool:
        return gateway in front.leaving

    probing = asyncio.create_task(probe())
    try:
        async with before(lambda: min(ready, key=is_leaving, default=None), hold) as front:
            yield front
    finally:
        probing.cancel()


pytestmark = pytest.mark.asyncio(loop_scope="session")

RUNS, TASKS = 10, 4
SLOW = 2.0


def tasks(runs: range) -> list[Object]:
    """Build pods of runs that must have a node each, and stay together."""
    return [
        pod(f"r{run}-{i}", "isolated", labels={"tekton.dev/pipelineRun": f"r{run}"})
        for i in range(TASKS)
        for run in runs
    ]


def violations(places: dict[str, str]) -> list[str]:
    """Return what is wrong: runs on several nodes, and nodes with several runs."""
    nodes, runs = defaultdict(set), defaultdict(set)
    for name, place in places.items():
        if place:
            nodes[name.partition("-")[0]].add(place)
            runs[place].add(name.partition("-")[0])
    split = [f"{run} is on {on}" for run, on in nodes.items() if len(on) > 1]
    return split + [f"{place} has {of}" for place, of in runs.items() if len(of) > 1]


async def in_flight(world: World, count: int = 3) -> None:
    async def slow() -> bool:
        return world.proxy.held >= count

    await world.until(slow)


async def all_right(world: World) -> None:
    """Wait until all pods are bound; check where, and that each was bound once."""
    places: dict[str, str] = {}

    async def bound_or_wrong() -> bool:
        nonlocal places
        places = await world.places()
        return all(places.values()) or bool(violations(places))

    await world.until(bound_or_wrong)
    assert violations(places) == []
    bound = [name for name, status in world.proxy.binds if status == 201]
    assert sorted(bound) == sorted(places)


async def test_a_gateway_that_is_killed_breaks_no_claim(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(2 * RUNS)))
    world.proxy.binding_seconds = SLOW
    gateway = world.services.programs["gateway"]
    async with world.scheduler("isolated"):
        for runs in (range(RUNS // 2), range(RUNS // 2, RUNS)):
            await world.create(*tasks(runs))
            await in_flight(world)
            await gateway.kill()
            await gateway.start()
        world.proxy.binding_seconds = 0.0
        await all_right(world)


async def test_two_gateways_that_are_called_in_turn_break_no_claim(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(2 * RUNS)))
    world.proxy.binding_seconds = 0.2
    async with gateways(world, 2) as both:
        turns = itertools.cycle(both)
        async with (
            before(lambda: next(turns)) as front,
            world.scheduler("isolated", urlPrefix=front.url),
        ):
            await world.create(*tasks(range(RUNS)))
            await all_right(world)


@asynccontextmanager
async def elected(world: World, patience: int = 5) -> AsyncIterator[tuple[Front, list[Gateway]]]:
    """Run two gateways with a Lease; give the leader first. A call has *patience* seconds."""
    timeout = f"{patience}s"
    await world.request("POST", "/api/v1/namespaces", {"metadata": {"name": "moorage"}})
    async with (
        gateways(
            world,
            2,
            *LEASE,
            "--shutdown-delay=4s",
            f"--http-timeout={timeout}",
            starts_ready=False,
        ) as both,
        service(both) as front,
        world.scheduler("isolated", urlPrefix=front.url, httpTimeout=timeout),
    ):
        yield front, await in_order(world, both)


async def in_order(world: World, both: list[Gateway]) -> list[Gateway]:
    """Wait until exactly one is ready; return it and the other."""
    order: list[Gateway] = []

    async def decided() -> bool:
        ready = [each for each in both if each.program.running and await each.is_ready()]
        order[:] = [*ready, *(each for each in both if each not in ready)]
        return len(ready) == 1

    await world.until(decided)
    return order


async def test_a_gateway_that_stands_by_takes_over(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(2 * RUNS)))
    world.proxy.binding_seconds = SLOW
    async with elected(world) as (_, (leader, standby)):
        await world.create(*tasks(range(RUNS)))
        await in_flight(world)
        await leader.program.kill()
        await world.until(standby.is_ready)
        world.proxy.binding_seconds = 0.0
        await all_right(world)


@asynccontextmanager
async def coming_pods(world: World) -> AsyncIterator[None]:
    """Create pods, one after the other, for as long as the block lasts."""

    async def create() -> None:
        for number in itertools.count():
            await world.create(pod(f"p{number}", "isolated"))
            await asyncio.sleep(0.05)

    creating = asyncio.create_task(create())
    try:
        yield
    finally:
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)


async def test_a_rolling_update_of_two_gateways_fails_no_call(world: World) -> None:
    await world.nodes(*(node(f"n{i}", cpu="64") for i in range(3)))
    # On a busy machine a handover takes longer than a call has by default.
    async with elected(world, patience=30) as (front, order):
        async with coming_pods(world):
            await world.placed(5)
            for leaving, staying in (order, order[::-1]):
                before_that = front.calls
                front.leaving.append(leaving)
                await leaving.program.stop()
                await world.until(staying.is_ready)
                await leaving.program.start()  # which stands by from here on
                front.leaving.remove(leaving)
                await world.placed(sum(map(bool, (await world.places()).values())) + 20)
                assert front.calls > before_that + 20
        assert front.failed == []
        await world.bound()
        bound = [name for name, status in world.proxy.binds if status == 201]
        assert sorted(bound) == sorted(await world.pods())


async def test_a_rolling_update_of_one_gateway_fails_no_call(world: World) -> None:
    await world.nodes(*(node(f"n{i}", cpu="64") for i in range(3)))
    async with gateways(world, 2, "--shutdown-delay=2s", "--http-timeout=30s") as (old, new):
        await new.program.stop()
        async with (
            service([old, new], hold=0.0) as front,
            world.scheduler("isolated", urlPrefix=front.url, httpTimeout="30s"),
            coming_pods(world),
        ):
            await world.placed(5)
            await new.program.start()  # beside the old one, as the Deployment has it
            count = sum(map(bool, (await world.places()).values()))
            await world.placed(count + 10)
            front.leaving.append(old)
            before_that = front.calls
            await old.program.stop()
            count = sum(map(bool, (await world.places()).values()))
            await world.placed(count + 20)
        assert front.calls > before_that + 20
        assert front.failed == []
        async with world.scheduler("isolated", urlPrefix=new.extender):
            await world.bound()
        bound = [name for name, status in world.proxy.binds if status == 201]
        assert sorted(bound) == sorted(await world.pods())


async def test_a_leader_that_was_held_for_longer_than_its_lease_binds_nothing(
    world: World,
) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(2 * RUNS)))
    world.proxy.binding_seconds = SLOW
    async with elected(world) as (_, (leader, standby)):
        await world.create(*tasks(range(RUNS)))
        await in_flight(world)
        leader.program.hold()
        try:
            await world.until(standby.is_ready)
        finally:
            leader.program.go_on()
        world.proxy.binding_seconds = 0.0
        await all_right(world)
        assert await in_order(world, [leader, standby]) == [standby, leader]


async def test_schedulers_with_a_gateway_each_need_no_lease(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(2 * RUNS)))
    world.proxy.binding_seconds = SLOW
    async with (
        gateways(world, 2) as both,
        world.scheduler("isolated", urlPrefix=both[0].extender) as first,
    ):
        await world.create(*tasks(range(RUNS)))
        await in_flight(world)
        await first.kill()
        second = world.scheduler("isolated", name="kube-scheduler-2", urlPrefix=both[1].extender)
        async with second:
            world.proxy.binding_seconds = 0.0
            await all_right(world)
