"""Carries out the faults of a schedule on a running stack."""

import asyncio
import dataclasses
import fcntl
import json
import math
import os
import uuid
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

import aiohttp
import grpc.aio
import msgspec
import yaml

from moorage.v1.binder_pb2 import BindRequest
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage.v1.replica_pb2 import GetStateRequest
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from tools.chaos.api_server import ApiServerFaults
from tools.chaos.certificates import Certificates, grpc_channel, http_context
from tools.chaos.faults import BINDER_IN_USE, LEADER, Injection
from tools.chaos.link import Link
from tools.chaos.plugins.rules.rules import POISON
from tools.chaos.stack import FIRST, POLICY, SCHEDULER, SECOND, Stack
from tools.planes.moorage import HOST
from tools.planes.programs import ProgramError

SECONDS = 5
REFUSED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED})


async def let_in(stack: Stack, session: aiohttp.ClientSession, folder: Path) -> list[str]:
    """Return which ports have let a caller in with the certificate of *folder*."""
    (gateway,) = stack.gateways
    edge = f"https://{HOST}:{stack.port(gateway)}/filter"
    bind = BindRequest(namespace="default", name="none", uid="none", node="none")
    state = GetStateRequest(node_names=["plain-0"])
    async with (
        grpc_channel(f"{HOST}:{stack.port('binder')}", folder) as binder,
        grpc_channel(f"{HOST}:{stack.port('filter')}", folder) as filtering,
    ):
        entered = {
            "extender": await _http(session, "POST", edge, folder),
            "gateway's metrics": await _http(
                session, "GET", f"{stack.admin(gateway)}/metrics", folder
            ),
            "Bind": await _grpc(BinderServiceStub(binder).Bind(bind, timeout=SECONDS)),
            "GetState": await _grpc(ReplicaServiceStub(filtering).GetState(state, timeout=SECONDS)),
        }
    return [f"{port} answered a call" for port, is_in in entered.items() if is_in]


async def _http(session: aiohttp.ClientSession, method: str, url: str, folder: Path) -> bool:
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    options = {"ssl": http_context(folder), "timeout": timeout, "json": {}}
    try:
        async with session.request(method, url, **options) as answer:  # type: ignore[arg-type]
            return answer.status not in (401, 403)
    except aiohttp.ClientError:
        return False


async def _grpc(call: Awaitable[object]) -> bool:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code() not in REFUSED
    return True


PIPE_BYTES = 4096
SIMULATED_BYTES = 2_000_000
BAD_CALLS = 100
RELOAD_SECONDS = 5.0


class Injector(ApiServerFaults):
    """Knows each fault by the name of its method."""

    def __init__(self, stack: Stack, session: aiohttp.ClientSession) -> None:
        super().__init__(stack, session)
        self._replacing = asyncio.Lock()

    async def run(self, injection: Injection) -> None:
        """Wait for the time of a fault, carry it out, and end it."""
        await asyncio.sleep(injection.at)
        if injection.target.startswith(LEADER):
            leader = await self._stack.leader()
            target = injection.target.replace(LEADER, leader)
            injection = dataclasses.replace(injection, target=target)
        if injection.target == BINDER_IN_USE:
            injection = dataclasses.replace(injection, target=self._stack.binder_in_use())
        act: Callable[[Injection], Awaitable[None]] = getattr(self, injection.fault)
        await act(injection)

    # ---- processes

    async def kill(self, injection: Injection) -> None:
        """End a program at once; it is started again."""
        await self._stack.programs[injection.target].kill()

    async def terminate(self, injection: Injection) -> None:
        """End a program in order; it is started again."""
        await self._stack.programs[injection.target].stop()

    async def stop(self, injection: Injection) -> None:
        """Let a program do nothing for a while."""
        program = self._stack.programs[injection.target]
        with suppress(ProcessLookupError):
            program.hold()
            await asyncio.sleep(injection.seconds)
            program.go_on()

    async def jump_clock(self, injection: Injection) -> None:
        """Let the wall clock of a program be wrong."""
        assert self._stack.clocks
        self._stack.clocks.jump(injection.target, injection.amount)

    async def other_version(self, injection: Injection) -> None:
        """Let a program run the other version of a plugin for a while."""
        program = self._stack.programs[injection.target]
        usual = list(program.command)
        for command in ([part.replace(FIRST, SECOND) for part in usual], usual):
            with self._stack.away(injection.target):
                await program.stop()
                program.command = command
                await program.start()
            if command is not usual:
                await asyncio.sleep(injection.seconds)

    async def full_log(self, injection: Injection) -> None:
        """Restart a program with its log on a full disk, and call it with bad requests."""
        await self._with_log(injection, "/dev/full")

    async def unread_log(self, injection: Injection) -> None:
        """Restart a program with its log into a small pipe that nobody reads."""
        path = self._stack.directory / f"{injection.target}.pipe"
        if not path.exists():
            os.mkfifo(path)
        end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            await self._with_log(injection, str(path))
        finally:
            os.close(end)

    async def _with_log(self, injection: Injection, path: str) -> None:
        program = self._stack.programs[injection.target]
        usual = program.log
        with self._stack.away(injection.target):
            await program.stop()
            program.log = Path(path)
            try:
                await program.start()
                # Its admin port answers a moment before kube-scheduler's is there.
                while {"serving", "answer"} & await self._stack.lacks(  # noqa: ASYNC110
                    injection.target
                ):
                    await asyncio.sleep(0.05)
                await self._call_badly(injection.target)
                await asyncio.sleep(injection.seconds)
                if not program.running:
                    self.problems.append(f"{injection.target} ended, its log was {path}")
            except ProgramError:
                self.problems.append(f"{injection.target} did not start with its log at {path}")
            finally:
                await program.kill()
                program.log = usual
            await program.start()

    async def _call_badly(self, target: str) -> None:
        """Send requests that a program logs, as many as fill a pipe; each must be answered."""
        url = f"http://{HOST}:{self._stack.port(target)}/filter"
        timeout = aiohttp.ClientTimeout(total=2)
        for number in range(BAD_CALLS):
            try:
                async with self._session.post(url, data=b"{bad", timeout=timeout) as answer:
                    await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                self.problems.append(f"{target} did not answer bad call {number + 1}: {error!r}")
                return

    # ---- tenants

    async def poison(self, injection: Injection) -> None:
        """Create a pod of a tenant that a plugin does not survive, or not in time."""
        labels = {POISON: injection.target}
        metadata = {"generateName": f"poison-{injection.target}-", "labels": labels}
        spec = {"schedulerName": "moorage", "containers": [{"name": "main", "image": "app:1"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}}
        async with self._session.post(f"{self._stack.plane.url}/api/v1/namespaces", json=namespace):
            pass  # it may be there already
        async with self._session.post(self._tenant, json=pod) as answer:
            answer.raise_for_status()

    async def simulate(self, injection: Injection) -> None:
        """Have many callers ask about a pod with a heavy manifest, each again and again."""
        metadata = {"name": "asked", "annotations": {"heavy": "x" * SIMULATED_BYTES}}
        spec = {"schedulerName": "moorage", "containers": [{"name": "main", "image": "app:1"}]}
        body = msgspec.json.encode({"pod": {"metadata": metadata, "spec": spec}})
        await self._crowd(injection, "POST", "simulate", {200, 429, 503}, data=body)

    async def show_tokens(self, injection: Injection) -> None:
        """Have many callers show tokens that nobody knows at the admin port."""
        await self._crowd(injection, "GET", "decisions", {401, 429, 503}, unknown=True)

    async def _crowd(
        self,
        injection: Injection,
        method: str,
        path: str,
        right: Collection[int],
        *,
        data: bytes | None = None,
        unknown: bool = False,
    ) -> None:
        """Have many callers ask at the admin port, each time as somebody *unknown*."""
        url = f"{self._stack.admin(injection.target)}/{path}"
        end = asyncio.get_running_loop().time() + injection.seconds
        timeout = aiohttp.ClientTimeout(total=30)

        async def ask() -> None:
            while asyncio.get_running_loop().time() < end:
                headers = {"Authorization": f"Bearer {uuid.uuid4()}"} if unknown else {}
                async with self._session.request(
                    method, url, data=data, headers=headers, ssl=False, timeout=timeout
                ) as answer:
                    await answer.read()
                    if answer.status not in right:
                        self.problems.append(f"/{path} answers {answer.status}")

        async with asyncio.TaskGroup() as group:
            for _ in range(int(injection.amount)):
                group.create_task(ask())

    async def shadow(self, injection: Injection) -> None:
        """Let the policy have a shadow whose plugin does something bad, for a while."""
        args = {"name": "Poison", "args": {"deed": injection.target}}
        document = yaml.safe_load(POLICY)
        document["profiles"][0]["shadow"] = {"pluginConfig": [args], "maxShare": "100%"}
        self._stack.policy.write_text(json.dumps(document))
        await asyncio.sleep(injection.seconds)
        self._stack.policy.write_text(POLICY)

    @property
    def _tenant(self) -> str:
        return f"{self._stack.plane.url}/api/v1/namespaces/tenant/pods"

    # ---- certificates

    async def renew_certificates(self, _: Injection) -> None:
        """Replace all certificates; each process must take its own."""
        await self._replace(self._certificates.renew, "The certificate is reloaded")

    async def spoil_certificates(self, injection: Injection) -> None:
        """Replace all certificates for a while by expired and foreign ones: nobody may take one."""
        await self._replace(self._certificates.spoil, "The certificate is not reloaded")
        await asyncio.sleep(injection.seconds)
        await self.renew_certificates(injection)

    async def intrude(self, _: Injection) -> None:
        """Call every port with certificates that must be refused."""
        for wrong, folder in self._certificates.intruders().items():
            found = await let_in(self._stack, self._session, folder)
            self.problems += [f"{each} with {wrong}" for each in found]

    @property
    def _certificates(self) -> Certificates:
        assert self._stack.certificates
        return self._stack.certificates

    async def _replace(self, replace: Callable[[], None], event: str) -> None:
        """Replace files, and wait until each process has noticed; one fault after the other."""
        programs = [p for name, p in self._stack.programs.items() if name != SCHEDULER]

        def counts() -> list[int]:
            return [program.log.read_text().count(event) for program in programs]

        async with self._replacing:
            before = await asyncio.to_thread(counts)
            await asyncio.to_thread(replace)
            try:
                async with asyncio.timeout(RELOAD_SECONDS):
                    while any(  # noqa: ASYNC110 - logs of others
                        map(int.__le__, await asyncio.to_thread(counts), before)
                    ):
                        await asyncio.sleep(0.1)
            except TimeoutError:
                self.problems.append(f"not every process has logged: {event}")

    # ---- links

    async def hold_both(self, injection: Injection) -> None:
        """Pass nothing between two programs."""
        await self._until_healed(injection, lambda link: link.hold("up", "down"))

    async def hold_up(self, injection: Injection) -> None:
        """Hold what the client sends."""
        await self._until_healed(injection, lambda link: link.hold("up"))

    async def hold_down(self, injection: Injection) -> None:
        """Hold what the server sends."""
        await self._until_healed(injection, lambda link: link.hold("down"))

    async def freeze(self, injection: Injection) -> None:
        """Hold what was sent on connections that are open now, also when its sender has died."""
        await self._until_healed(injection, Link.freeze)

    async def _until_healed(self, injection: Injection, fault: Callable[[Link], None]) -> None:
        link = self._stack.links[injection.target]
        fault(link)
        await asyncio.sleep(injection.seconds)
        link.heal()

    async def cut(self, injection: Injection) -> None:
        """Reset all connections between two programs."""
        self._stack.links[injection.target].cut()

    async def half_open(self, injection: Injection) -> None:
        """Reset only the server's ends."""
        self._stack.links[injection.target].half_open()

    async def latency(self, injection: Injection) -> None:
        """Have everything arrive late."""
        link = self._stack.links[injection.target]
        link.delay = injection.amount
        await asyncio.sleep(injection.seconds)
        link.delay = 0.0

    async def narrow(self, injection: Injection) -> None:
        """Pass only so many bytes a second on."""
        link = self._stack.links[injection.target]
        link.bandwidth = injection.amount
        await asyncio.sleep(injection.seconds)
        link.bandwidth = math.inf

    async def end(self) -> None:
        """End all faults."""
        self._stack.heal()
        if self._stack.plane.name == "embedded":
            await self._clear()
            async with self._session.delete(self._tenant):
                pass  # in most rounds there is none
