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
from typing import Any

import aiohttp
import grpc.aio
import msgspec
import yaml

from gateway.leadership.election import EPOCH
from moorage.v1.binder_pb2 import BindRequest
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage.v1.replica_pb2 import GetStateRequest
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from tools.chaos.certificates import Certificates, grpc_channel, http_context
from tools.chaos.faults import BINDER_IN_USE, GATEWAY, LEADER, Injection
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


LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/moorage-gateway"

BINDINGS_AHEAD = 200
"""Bindings that a fault of the API server can concern in a round."""

LIES_AHEAD = 10_000
"""Requests that a lie can concern; it is forgotten before."""

PIPE_BYTES = 4096
SIMULATED_BYTES = 2_000_000
BAD_CALLS = 100
RELOAD_SECONDS = 5.0


class Injector:
    """Knows each fault by the name of its method."""

    def __init__(self, stack: Stack, session: aiohttp.ClientSession) -> None:
        self._stack = stack
        self._session = session
        self._replacing = asyncio.Lock()
        self.problems: list[str] = []
        """What went wrong that the audit log does not show, since this was last emptied."""

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

    # ---- the API server

    async def garbage_lease(self, injection: Injection) -> None:
        """Write nonsense into the Lease: a huge epoch, a foreign holder for ever, or no number."""
        garbage: dict[str, Any] = (
            {"metadata": {"annotations": {EPOCH: "9" * 30}}},
            {"spec": {"holderIdentity": "foreign", "leaseDurationSeconds": 2_000_000_000}},
            {"metadata": {"annotations": {EPOCH: "-1"}}, "spec": {"leaseTransitions": -7}},
        )[int(injection.amount)]
        url = f"{self._stack.plane.url}{LEASE}"
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(url, json=garbage, headers=headers) as answer:
            answer.raise_for_status()

    async def slow_bindings(self, injection: Injection) -> None:
        """Have each Binding take between a fifth and all of an amount of seconds.

        What the binder exchanges with a real API server is late instead.
        """
        if self._stack.plane.name == "real":
            self._stack.links["binder>api"].delay = injection.amount / 8
            return
        for i in range(BINDINGS_AHEAD):
            delay = injection.amount * (0.2 + 0.8 * ((i * 7) % 11) / 10)
            await self._fault(delaySeconds=round(delay, 2))

    async def refuse_bindings(self, injection: Injection) -> None:
        """Answer a share of the next Bindings with failures that may be tried again."""
        await self._clear()
        for i in range(BINDINGS_AHEAD):
            refused = (i * 0.618) % 1 < injection.amount
            effects = (
                {"status": (409, 429, 500, 503)[i % 4], "retryAfterSeconds": 1} if refused else {}
            )
            await self._fault(**effects)

    async def lose_answers(self, injection: Injection) -> None:
        """Carry out a share of the next Bindings without an answer."""
        await self._clear()
        for i in range(BINDINGS_AHEAD):
            lost = (i * 0.618) % 1 < injection.amount
            await self._fault(**({"done": True, "drop": True} if lost else {}))

    async def drop_watches(self, injection: Injection) -> None:
        """Cut all watches."""
        await self._post("watches/drop", {})

    async def expire_watches(self, injection: Injection) -> None:
        """End all watches with 410 and forget the history."""
        await self._post("watches/drop", {"expire": True})

    async def lie(self, injection: Injection) -> None:
        """Have watches and lists lie for a while, or answer 410; a gateway must say what is wrong.

        A true oddity is nothing wrong, nor is silence that is shorter than that of a quiet watch.
        """
        target, truths = injection.target, ("gzip", "split", "twice", "silent", "drip")
        effect = {"status": 410} if target == "410" else {"lie": target, "delaySeconds": 0.1}
        for resource in ("nodes", "pods"):
            for verb in ("watch", "list"):
                fault = {"verb": verb, "resource": resource, "times": LIES_AHEAD, **effect}
                await self._post("faults", fault)
        await self._post("watches/drop", {})
        noticed, end = False, asyncio.get_running_loop().time() + injection.seconds
        while asyncio.get_running_loop().time() < end:
            noticed = noticed or await self._reports_cache()
            await asyncio.sleep(0.05)
        await self._clear()
        if not noticed and target not in truths:
            self.problems.append(f"/readyz did not say what is wrong: {target}")

    async def _reports_cache(self) -> bool:
        """Return whether a gateway that answers says of its cache what is wrong."""
        url = f"{self._stack.admin(GATEWAY)}/readyz"
        with suppress(aiohttp.ClientError):
            async with self._session.get(url, ssl=self._stack.ssl()) as answer:
                found = await answer.json()
                shown = (*found.get("checks", ()), *found.get("notes", ()))
                return any(each["name"] == "cache" for each in shown)
        return False

    async def refuse_watches(self, injection: Injection) -> None:
        """Refuse the next watches and lists in different ways."""
        for status in (403, 500, 429):
            for verb in ("watch", "list"):
                await self._post("faults", {"verb": verb, "resource": "pods", "status": status})
        await self._post("watches/drop", {})

    async def end(self) -> None:
        """End all faults."""
        self._stack.heal()
        if self._stack.plane.name == "embedded":
            await self._clear()
            async with self._session.delete(self._tenant):
                pass  # in most rounds there is none

    async def _fault(self, **effects: Any) -> None:
        await self._post("faults", {"verb": "create", "resource": "pods/binding", **effects})

    async def _clear(self) -> None:
        url = f"{self._stack.plane.url}/sandbox/faults"
        async with self._session.delete(url) as answer:
            answer.raise_for_status()

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        url = f"{self._stack.plane.url}/sandbox/{path}"
        async with self._session.post(url, json=body) as answer:
            answer.raise_for_status()
