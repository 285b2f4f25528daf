"""What is measured, as real processes on one cluster: Moorage with its policy, and Go extenders.

Every stack of Moorage has its own gateway, filter, scorers and binder on the API server of the
cluster. The policy has three filters and scores in both forms, and none.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from bench.processes import goprograms
from cli.shared.gateway.metrics import Metrics
from cli.up.processes import Process, Processes, free_ports
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from sandbox.apiserver.server import kubeconfig as server_kubeconfig

BATCH, PER_NODE, EMPTY = "batch-3", "per-node-3", "empty"
"""The schedulerNames: plugins for all nodes at once, plugins for one node, no plugins."""

FILTERS = ("TaintToleration", "NodeAffinity", "NodeResourcesFit")
SCORES = (
    ("TaintToleration", 3),
    ("NodeResourcesLeastAllocated", 1),
    ("NodeResourcesBalancedAllocation", 1),
)
"""Scores with their weights. The Go extender with plugins has the same filters and scores."""

PLUGINS = Path(__file__).with_name("plugins") / "per_node.py"
"""The file with the plugins for one node; their names begin with PerNode."""


Profiles = Mapping[str, tuple[Sequence[str], Sequence[tuple[str, int]]]]
"""Filters, and scores with their weights, by schedulerName."""

PROFILES: Profiles = {
    BATCH: (FILTERS, SCORES),
    PER_NODE: (
        [f"PerNode{name}" for name in FILTERS],
        [(f"PerNode{name}", weight) for name, weight in SCORES],
    ),
    EMPTY: ((), ()),
}


def write_policy(file: Path, profiles: Profiles) -> None:
    """Write the policy with these profiles."""
    listed = [
        {
            "schedulerName": name,
            "plugins": {
                "filter": {"enabled": [{"name": each} for each in filters]},
                "score": {"enabled": [{"name": each, "weight": weight} for each, weight in scores]},
            },
        }
        for name, (filters, scores) in profiles.items()
    ]
    head = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}
    file.write_text(yaml.safe_dump({**head, "profiles": listed}))


HOST = "127.0.0.1"
READY_SECONDS = 900.0
STOP_SECONDS = 10.0
PEER_SECONDS = 60.0


class NotReadyError(Exception):
    """Moorage does not get ready on a cluster; the message names what it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An API server with nodes and pods."""

    api: str
    kubeconfig: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Moorage: where it listens, and its processes by name."""

    addresses: Addresses
    processes: Mapping[str, Process]

    @property
    def pids(self) -> Mapping[str, int]:
        """The ids of the processes that run now."""
        return {name: process.pid for name, process in self.processes.items()}

    async def counted(self, name: str, **labels: str) -> float:
        """Return the sum of the gateway's counters of this name that have these labels."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.addresses.admin}/metrics") as answer,
        ):
            text = await answer.text()
        return Metrics(text, (name,)).total(name, **labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoExtender:
    """A running Go extender."""

    url: str
    pid: int


@dataclass(slots=True)
class Bench:
    """Starts what is measured, and stops it in the end; `opened` makes one.

    Attributes:
        directory: Where logs and policies go.
        progress: Shows what is being done.
    """

    directory: Path
    progress: Callable[[str], None]
    _processes: list[Processes] = field(default_factory=list)
    _programs: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def cluster(
        self,
        nodes: int,
        pods_per_node: int,
        *,
        heartbeats: float = 0,
        changed_pods: float = 0,
        peers: bool = False,
    ) -> Cluster:
        """Start an API server with so many nodes and pods; so many change in a second."""
        (port,) = free_ports(1)
        process = Process(
            name=f"api-server-{nodes}",
            module="bench.processes.apiserver",
            options=[
                f"--port={port}",
                f"--nodes={nodes}",
                f"--pods-per-node={pods_per_node}",
                f"--heartbeats={heartbeats}",
                f"--changed-pods={changed_pods}",
                f"--{'' if peers else 'no-'}peers",
            ],
            log=self.directory / f"api-server-{nodes}.log",
        )
        await self._start([process])
        api = f"http://{HOST}:{port}"
        kubeconfig = self.directory / f"kubeconfig-{nodes}"
        kubeconfig.write_text(yaml.safe_dump(server_kubeconfig(api, "bench")))
        return Cluster(api=api, kubeconfig=kubeconfig)

    async def moorage(
        self, kubeconfig: Path, profiles: Profiles = PROFILES, plugins: Path = PLUGINS
    ) -> Stack:
        """Start Moorage, by default with the policy of the bench; it is ready when this returns."""
        directory = self.directory / "moorage"
        directory.mkdir()
        config = directory / "policy.yaml"
        write_policy(config, profiles)
        options = StackOptions(
            directory=directory,
            kubeconfig=kubeconfig,
            config=config,
            profiles=(),
            plugins=(plugins,),
        )
        processes = Processes(self.progress)
        self._processes.append(processes)
        addresses = await start_stack(options, processes)
        await _ready(f"{addresses.admin}/readyz")
        names = (*addresses.services, "gateway")
        return Stack(addresses=addresses, processes={n: processes.named(n) for n in names})

    async def go_extender(self, name: str, *options: str) -> GoExtender:
        """Start one of the Go extenders."""
        program = await self.program(name, *options)
        assert program.stdout is not None
        port = (await program.stdout.readline()).decode().strip()
        if not port:
            raise RuntimeError(f"the Go program {name} ended with {await program.wait()}")
        return GoExtender(url=f"http://{HOST}:{port}", pid=program.pid)

    async def peer(
        self, port: int, command: Sequence[str], environment: Mapping[str, str] = {}
    ) -> int:
        """Start an extender of others, and wait until it listens; return the process's id."""
        log = self.directory / f"peer-{port}.log"
        with log.open("wb") as output:
            started = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._programs.append(started)
        async with asyncio.timeout(PEER_SECONDS):
            while True:
                if started.returncode is not None:
                    raise NotReadyError(f"{command[0]} ended: {log.read_text()[-500:]}")
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(HOST, port)
                    writer.close()
                    return started.pid
                await asyncio.sleep(0.05)

    async def program(self, name: str, *options: str) -> asyncio.subprocess.Process:
        """Start a Go program that talks through pipes; it ends when its stdin does."""
        path = await asyncio.to_thread(goprograms.program, name)
        started = await asyncio.create_subprocess_exec(
            path,
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 30,
        )
        self._programs.append(started)
        return started

    async def stop(self) -> None:
        """Stop everything."""
        for program in self._programs:
            if program.returncode is None:
                program.kill()
            await program.wait()
        self._programs.clear()
        for processes in reversed(self._processes):
            await processes.stop()
        self._processes.clear()

    async def _start(self, group: Sequence[Process]) -> None:
        processes = Processes(self.progress)
        self._processes.append(processes)
        await processes.start(group)


@asynccontextmanager
async def opened(directory: Path, progress: Callable[[str], None]) -> AsyncIterator[Bench]:
    """Run a bench whose processes end with the block."""
    bench = Bench(directory, progress)
    try:
        yield bench
    finally:
        await bench.stop()


async def _ready(url: str) -> None:
    problem = ""
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(READY_SECONDS):
            while True:
                async with session.get(url) as response:
                    if response.status == 200:
                        return
                    problem = await response.text()
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise NotReadyError(f"not ready after {READY_SECONDS:g} s: {problem}") from error
