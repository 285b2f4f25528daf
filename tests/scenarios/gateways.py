"""Several gateways, and what stands before them as a Service does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import aiohttp
from aiohttp import web

from cli.up.processes import free_ports
from tests.scenarios.services import HOST
from tests.scenarios.world import World
from tools.planes.embedded import answers
from tools.planes.objects import NAMESPACE
from tools.planes.programs import Program, stop_all

HOLD_SECONDS = 4.0

LEASE = (
    "--leader-election=lease",
    "--lease-duration=2s",
    "--lease-renew-deadline=1500ms",
    "--lease-retry-period=300ms",
)
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
async def service(all_: Sequence[Gateway]) -> AsyncIterator[Front]:
    """Pass calls on to the gateway that is ready, as a Service does."""
    ready: list[Gateway] = []

    async def probe() -> None:
        while True:
            ready[:] = [each for each in all_ if await each.is_ready()]
            await asyncio.sleep(0.05)

    def is_leaving(gateway: Gateway) -> bool:
        return gateway in front.leaving

    probing = asyncio.create_task(probe())
    try:
        async with before(lambda: min(ready, key=is_leaving, default=None)) as front:
            yield front
    finally:
        probing.cancel()
