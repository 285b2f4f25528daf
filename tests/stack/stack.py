"""What tests do with a running stack."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

import aiohttp

from cli.shared.manifests import Object
from cli.up.cluster import PODS, create
from cli.up.processes import Processes
from cli.up.processes.stack import Addresses, StackOptions, start_stack
from cli.up.readiness import gateway_at, wait_until_ready
from sandbox.client import Api
from tests.manifests import pod
from tools.planes.caller import Caller
from tools.waiting import until

PATIENCE = 60.0
KEPT = {
    "pods": "api/v1/namespaces/default/pods",
    "nodes": "api/v1/nodes",
    "statefulsets.apps": "apis/apps/v1/namespaces/default/statefulsets",
    "persistentvolumes": "api/v1/persistentvolumes",
}
"""What the gateway keeps here, by its name in the metrics: where to delete it."""


class Stack(Caller):
    """A running stack, and shorthand for what tests ask of it."""

    def __init__(
        self,
        options: StackOptions,
        addresses: Addresses,
        processes: Processes,
        cluster: Api,
        session: aiohttp.ClientSession,
    ) -> None:
        super().__init__(addresses.extender, addresses.admin)
        self.addresses = addresses
        self.cluster = cluster
        self.session = session
        self.processes = processes
        self.messages: list[str] = []
        self.trace = options.directory / "trace"

    @classmethod
    @asynccontextmanager
    async def started(cls, options: StackOptions) -> AsyncIterator[Self]:
        """Start what `moorage up` does, and keep it: what ends is started again."""
        messages: list[str] = []
        processes = Processes(messages.append)
        try:
            addresses = await start_stack(options, processes)
            async with gateway_at(addresses.admin) as gateway:
                assert await wait_until_ready(gateway) == ""
            async with (
                Api(addresses.api) as cluster,
                aiohttp.ClientSession() as session,
                processes.kept(),
            ):
                stack = cls(options, addresses, processes, cluster, session)
                stack.messages = messages
                yield stack
        finally:
            await processes.stop()

    async def create(
        self, nodes: Iterable[Object] = (), pods: Iterable[Object] = ()
    ) -> list[Object]:
        """Create nodes, wait until the gateway knows them, then create pods; return the pods."""
        nodes = list(nodes)
        await create(self.cluster, nodes)
        for node in nodes:
            await self.knows(node["metadata"]["name"])
        return await create(self.cluster, list(pods))

    async def knows(self, node: str) -> None:
        """Wait until the gateway's cache has a node."""

        async def known() -> bool:
            answer = await self.filter(pod("probe"), [node])
            return "not known" not in str(answer)

        await self.until(known)

    async def pods(self) -> dict[str, Object]:
        """Return all pods by name."""
        found, _ = await self.cluster.list(PODS)
        return {obj["metadata"]["name"]: obj for obj in found}

    async def places(self) -> dict[str, str]:
        """Return the node of each pod by name, "" for none."""
        return {name: obj["spec"].get("nodeName", "") for name, obj in (await self.pods()).items()}

    async def all_bound(self, count: int) -> dict[str, str]:
        """Wait until *count* pods are bound; return their places."""

        async def bound() -> bool:
            return sum(map(bool, (await self.places()).values())) >= count

        await self.until(bound)
        return await self.places()

    async def post(self, path: str, obj: Object) -> None:
        """Create an object of any kind at the API server."""
        async with self.session.post(f"{self.addresses.api}/{path}", json=obj) as response:
            assert response.status == 201, await response.text()

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one of the processes; by default it dies at once."""
        os.kill(self.processes.named(name).pid, number)

    async def answers(self) -> None:
        """Wait until the gateway answers and is ready."""

        async def ready() -> bool:
            try:
                async with self.session.get(f"{self.addresses.admin}/readyz") as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

        await self.until(ready)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds."""
        await until(condition, PATIENCE)

    async def clear(self) -> None:
        """Remove all objects and faults, and wait until the gateway has seen that."""
        api = self.addresses.api
        for path in ("sandbox/faults", *KEPT.values()):
            async with self.session.delete(f"{api}/{path}") as response:
                assert response.status < 300, await response.text()

        async def gone() -> bool:
            return not any([await self.metric("moorage_cache_size", type=t) for t in KEPT])

        await self.until(gone)
