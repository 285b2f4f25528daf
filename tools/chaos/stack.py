"""A control plane and Moorage's processes, with a link between every two of them."""

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import aiohttp
import grpc.aio
import yaml

from tools.chaos.certificates import Certificates, grpc_channel, http_context
from tools.chaos.clocks import Clocks
from tools.chaos.faults import ELECTED_GATEWAYS, LEASE_SECONDS
from tools.chaos.link import Link
from tools.planes.embedded import Identity, Plane, answers, shipped_config
from tools.planes.moorage import HOST, SERVICES, Moorage
from tools.planes.programs import Program, ProgramError

HERE = Path(__file__).parent
FIRST, SECOND = (str(HERE / "plugins" / version) for version in ("first", "second"))
"""Where the two versions of a plugin are."""

POLICY = (HERE / "plugins" / "policy.yaml").read_text()

PROFILES = ("moorage", "ranked")
SCHEDULER = "kube-scheduler"
Layout = Literal[
    "one gateway", "two filters", "two binders", "certificates", "in turn", "elected", "clocks"
]
"""How many gateways there are, which of them kube-scheduler calls, and whether with TLS.

With "clocks" one is elected, and wall clocks can be set.
"""

FURTHER: Mapping[Layout, str] = {"two filters": "filter-2", "two binders": "binder-2"}
"""A service beside the usual ones."""

TWO_GATEWAYS: frozenset[Layout] = frozenset({"in turn", "elected", "clocks"})
WITH_ELECTION: frozenset[Layout] = frozenset({"elected", "clocks"})

LEASE = ("--leader-election=lease", f"--lease-duration={LEASE_SECONDS}s")

HTTP_TIMEOUT = "10s"

OPTIONS: Mapping[str, Sequence[str]] = {
    "filter": (f"--plugin={HERE / 'plugins' / 'rules'}",),
    "scorer": (f"--plugin={FIRST}",),
    "gateway": (f"--http-timeout={HTTP_TIMEOUT}",),
}
"""Of processes, by their kind."""

RESTART_SECONDS = 0.3
"""How long a process stays away that has ended, as a kubelet starts it again."""

API_CLIENTS: dict[str, Identity] = {
    "gateway": "gateway",
    "binder": "binder",
    SCHEDULER: "scheduler",
}
"""Who reaches the API server, and as whom."""


class Stack:
    """Everything that faults happen to.

    Attributes:
        plane: The API server.
        links: By name, such as "gateway>binder".
        programs: By name; those of Moorage and kube-scheduler.
        kept: Whether programs that end are started again.
        policy: The file, which faults may change.
    """

    def __init__(self, plane: Plane, layout: Layout) -> None:
        self.plane = plane
        self.directory = plane.directory
        self.layout = layout
        self.gateways = list(ELECTED_GATEWAYS) if layout in TWO_GATEWAYS else ["gateway"]
        with_tls = layout == "certificates"
        self.certificates = Certificates(self.directory / "certificates") if with_tls else None
        self.clocks = Clocks(self.directory) if layout == "clocks" else None
        self.links: dict[str, Link] = {}
        self.programs: dict[str, Program] = {}
        self.policy = self.directory / "policy.yaml"
        self.policy.write_text(POLICY)
        self._held_back: set[str] = set()
        election = LEASE if layout in WITH_ELECTION else ()
        self._moorage = Moorage(
            self.directory,
            self._kubeconfig,
            services=[*SERVICES, FURTHER[layout]] if layout in FURTHER else SERVICES,
            gateways=self.gateways,
            certificates=self.directory / "certificates" if with_tls else None,
            options={**OPTIONS, "gateway": [*OPTIONS["gateway"], *election]},
            reach=lambda gateway, name: self.links[f"{gateway}>{name}"].port,
            environment=self.clocks.environment if self.clocks else lambda _: {},
            awaited=(),
        )
        self.scheme, self.admin = self._moorage.scheme, self._moorage.admin_of
        self.port = self._moorage.ports.__getitem__
        self._binders = [each for each in self._moorage.services if each.startswith("binder")]

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything; it is stopped when *stack* is left."""
        stack.push_async_callback(self.plane.stop)
        await self.plane.start()
        await self._start_links(stack)
        await stack.enter_async_context(self._moorage.started())
        self.programs = {**self._moorage.programs}
        scheduler = self._scheduler()
        stack.push_async_callback(scheduler.stop)
        self.programs[SCHEDULER] = scheduler
        await scheduler.start()
        if self.plane.name == "real":
            self.programs |= {program.name: program for program in self.plane.programs()}
        tasks = [asyncio.create_task(self._keep(name)) for name in self.programs]
        if self.layout in WITH_ELECTION:
            tasks.append(asyncio.create_task(self._route()))
        stack.push_async_callback(_cancel, tasks)

    def ssl(self) -> ssl.SSLContext | bool:
        """Return what an operator calls HTTP ports with."""
        return http_context(self.certificates.judge("operator")) if self.certificates else True

    def channel(self, name: str, identity: str) -> grpc.aio.Channel:
        """Return a channel to a program, without the link between."""
        at = self._moorage.target(name)
        if self.certificates:
            return grpc_channel(at, self.certificates.judge(identity))
        return grpc.aio.insecure_channel(at)

    async def leader(self) -> str:
        """Return the gateway that is ready; the first one if none is."""
        for name in self.gateways:
            if await self._is_ready(name):
                return name
        return self.gateways[0]

    def binder_in_use(self) -> str:
        """Return the binder to which the gateway is connected; the first one if to none."""
        ports = self.links[f"{self.gateways[0]}>binder"].serving
        return next((name for name in self._binders if self.port(name) in ports), "binder")

    def heal(self) -> None:
        """End all faults of links, and let held programs go on."""
        if self.clocks:
            self.clocks.heal()
        for link in self.links.values():
            link.heal()
        for program in self.programs.values():
            if program.running:
                with suppress(ProcessLookupError):
                    program.go_on()

    @contextmanager
    def away(self, name: str) -> Iterator[None]:
        """Do not start a program again for as long as the block lasts."""
        self._held_back.add(name)
        try:
            yield
        finally:
            self._held_back.discard(name)

    async def restart(self) -> None:
        """Start everything again, so that what went wrong in a round is over in the next."""
        for program in self.programs.values():
            await program.kill()

    async def ready(self) -> bool:
        """Whether all programs run, one gateway is ready, and others are but for deciding."""
        if not all(program.running for program in self.programs.values()):
            return False
        lacking = [await self.lacks(name) for name in self.gateways]
        return set() in lacking and all(each <= {"leader"} for each in lacking)

    async def lacks(self, gateway: str) -> set[str]:
        """Return the checks of `/readyz` that fail."""
        timeout = aiohttp.ClientTimeout(total=1)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"{self.admin(gateway)}/readyz", ssl=False) as response,
            ):
                return {check["name"] for check in (await response.json()).get("checks", ())}
        except (aiohttp.ClientError, TimeoutError, OSError):
            return {"answer"}

    async def _is_ready(self, gateway: str) -> bool:
        return await answers(f"{self.admin(gateway)}/readyz", ssl=False, seconds=1)

    async def _route(self) -> None:
        """Lead new connections of kube-scheduler to the ready gateway, as a Service does."""
        link = self.links[f"{SCHEDULER}>gateway"]
        while True:
            ready = await asyncio.gather(*map(self._is_ready, self.gateways))
            places = [self.port(name) for name in self.gateways]
            chosen = [port for port, is_ready in zip(places, ready, strict=True) if is_ready]
            link.targets = chosen or link.targets
            await asyncio.sleep(0.1)

    # ---- links

    async def _start_links(self, stack: AsyncExitStack) -> None:
        for gateway in self.gateways:
            for name in self._moorage.services:
                # As a Service does it, one address leads to all binders, another one each time.
                names = self._binders if name == "binder" else [name]
                ports = [self.port(each) for each in names]
                await self._link(stack, f"{gateway}>{name}", ports, in_turn=len(ports) > 1)
        extender = [self.port(name) for name in self.gateways]
        in_turn = self.layout == "in turn"
        await self._link(stack, f"{SCHEDULER}>gateway", extender, in_turn=in_turn)
        api = int(self.plane.url.rpartition(":")[2])
        for client in (*self.gateways, *self._binders, SCHEDULER):
            await self._link(stack, f"{client}>api", [api])

    async def _link(
        self, stack: AsyncExitStack, name: str, targets: Sequence[int], *, in_turn: bool = False
    ) -> None:
        link = self.links[name] = Link(name, targets, in_turn=in_turn)
        await link.start()
        stack.push_async_callback(link.stop)

    def _kubeconfig(self, client: str) -> Path:
        """Write how a client reaches the API server through its link."""
        identity = API_CLIENTS[client.partition("-")[0] if client != SCHEDULER else client]
        config = yaml.safe_load(self.plane.kubeconfig(identity).read_text())
        cluster = config["clusters"][0]["cluster"]
        scheme = cluster["server"].partition(":")[0]
        cluster["server"] = f"{scheme}://{HOST}:{self.links[f'{client}>api'].port}"
        config["contexts"][0]["context"]["namespace"] = "default"  # the Lease's
        file = self.directory / f"{client}-through-link.kubeconfig"
        file.write_text(json.dumps(config))
        return file

    # ---- programs

    def _scheduler(self) -> Program:
        config: dict[str, Any] = shipped_config()
        config["leaderElection"] = {"leaderElect": False}
        config["profiles"] = [{"schedulerName": name} for name in PROFILES]
        config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"] = 1, 2
        entry = config["extenders"][0]
        entry["urlPrefix"] = f"{self.scheme}://{HOST}:{self.links[f'{SCHEDULER}>gateway'].port}"
        if self.certificates:
            entry |= {"enableHTTPS": True, "tlsConfig": self.certificates.for_kube_scheduler()}
        entry |= {"bindVerb": "bind", "httpTimeout": HTTP_TIMEOUT}
        config["clientConnection"] = {"kubeconfig": str(self._kubeconfig(SCHEDULER))}
        program = self.plane.scheduler(SCHEDULER, config)
        api = f"http://{HOST}:{self.links[f'{SCHEDULER}>api'].port}"
        program.command = [
            f"--api-server={api}" if part.startswith("--api-server=") else part
            for part in program.command
        ]
        return program

    async def _keep(self, name: str) -> None:
        """Start a program again whenever it has ended."""
        while True:
            await asyncio.sleep(0.05)
            program = self.programs[name]
            if program.running or name in self._held_back:
                continue
            await asyncio.sleep(RESTART_SECONDS)
            with suppress(ProgramError):
                await program.start()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
