"""What the tests of the edge share: scripted cycles, and a client of bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry

from gateway.cycle import BindCall, Cycle, NodeSet
from gateway.cycle.answers import PhaseVerdicts
from gateway.cycle.nodes import NodeRows
from gateway.edge import Edge, EdgeSettings, run_edge
from moorage.execution import PluginRejection
from tools.recordings import recorded_requests

DATA = Path(__file__).parents[2] / "tests" / "data"


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """What a script answers: the nodes that are left, and reasons by node for the others."""

    feasible: NodeSet
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)

    def put_into(self, cycle: Cycle) -> None:
        """Have the cycle say so."""
        cycle.feasible = self.feasible
        reasons: dict[PluginRejection, int] = {}
        codes = np.zeros(len(cycle.nodes), np.uint16)
        for position, name in enumerate(cycle.nodes.names):
            text, is_final = self.failed.get(name), name in self.unresolvable
            if text is not None or is_final:
                reason = PluginRejection(
                    "Scripted", self.unresolvable.get(name, text or ""), is_final
                )
                codes[position] = reasons.setdefault(reason, len(reasons) + 1)
        rows = NodeRows.at(np.arange(len(codes)), len(codes))
        cycle.verdicts = PhaseVerdicts(
            bitmap=rows.bitmap, codes=codes, reasons=list(reasons), rows=rows
        )
        cycle.verdicts.record.feasible = int((codes == 0).sum())


async def keep_all(cycle: Cycle) -> Filtered:
    return Filtered(feasible=cycle.nodes)


def subset(cycle: Cycle, *kept: int) -> NodeSet:
    """Return the nodes of a cycle at some positions."""
    mask = np.zeros(len(cycle.nodes), np.bool_)
    mask[list(kept)] = True
    return cycle.nodes.restricted(mask)


async def rank_in_order(cycle: Cycle) -> Sequence[int]:
    return [index % 11 for index in range(len(cycle.nodes.names))]


async def keep_candidates(cycle: Cycle) -> NodeSet:
    return cycle.nodes


async def bind_at_once(call: BindCall) -> None:
    del call


class Held:
    """Keeps all nodes, and a filter waiting until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, cycle: Cycle) -> Filtered:
        self.begun.set()
        await self.go_on.wait()
        return Filtered(feasible=cycle.nodes)


@dataclass(kw_only=True)
class ScriptedCycles:
    """Answers with the functions it was given and remembers the calls."""

    on_filter: Callable[[Cycle], Awaitable[Filtered]] = keep_all
    on_prioritize: Callable[[Cycle], Awaitable[Sequence[int]]] = rank_in_order
    on_preempt: Callable[[Cycle], Awaitable[NodeSet]] = keep_candidates
    on_bind: Callable[[BindCall], Awaitable[None]] = bind_at_once
    scheduling: list[Cycle] = field(default_factory=list)
    preempts: list[Cycle] = field(default_factory=list)
    binds: list[BindCall] = field(default_factory=list)

    async def filter(self, cycle: Cycle) -> None:
        self.scheduling.append(cycle)
        (await self.on_filter(cycle)).put_into(cycle)

    async def prioritize(self, cycle: Cycle) -> Sequence[int]:
        self.scheduling.append(cycle)
        return await self.on_prioritize(cycle)

    async def preempt(self, cycle: Cycle) -> None:
        self.preempts.append(cycle)
        cycle.feasible = await self.on_preempt(cycle)

    async def bind(self, call: BindCall) -> None:
        self.binds.append(call)
        await self.on_bind(call)


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Wire:
    """One TCP connection, spoken to byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:-2])
        headers = {name.lower(): value for name, value in pairs}
        assert "transfer-encoding" not in headers
        body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(status=int(head[0].split()[1]), headers=headers, body=body)

    async def post(self, path: str, body: bytes) -> Answer:
        await self.send(go_request("POST", path, body))
        return await self.answer()

    async def closed_by_server(self) -> bool:
        return await self.reader.read() == b""

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@dataclass(frozen=True, kw_only=True)
class ServedEdge:
    port: int
    cycles: ScriptedCycles
    registry: CollectorRegistry

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Wire]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        wire = Wire(reader=reader, writer=writer)
        try:
            yield wire
        finally:
            writer.close()

    async def post(self, path: str, body: bytes | str | dict[str, Any]) -> Answer:
        raw = body if isinstance(body, bytes) else text(body).encode()
        async with self.connect() as wire:
            return await wire.post(path, raw)

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    async def until_counted(self, **labels: str) -> None:
        """Wait for a request to be over; there is no event for a change of a metric."""
        while not self.count("moorage_extender_requests_total", **labels):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(
    cycles: ScriptedCycles | None = None, **settings: Any
) -> AsyncIterator[ServedEdge]:
    """Serve an edge on a free port."""
    cycles, registry = cycles or ScriptedCycles(), CollectorRegistry()
    edge = Edge(cycles, EdgeSettings(**{"http_drain_time": 0.0} | settings), registry)
    async with run_edge(edge, "127.0.0.1", 0) as port:
        yield ServedEdge(port=port, cycles=cycles, registry=registry)


def go_request(method: str, path: str, body: bytes) -> bytes:
    """Return a request as Go's client writes it."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: gateway\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


def text(value: Any) -> str:
    """Return JSON as Go writes it: compact."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def pod(name: str = "web-0", uid: str = "u-1") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {}}]},
        "status": {"phase": "Pending"},
    }


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"unknown": [1]}}


def names_args(*names: str) -> dict[str, Any]:
    return {"Pod": pod(), "Nodes": None, "NodeNames": list(names)}


def nodes_args(*names: str) -> dict[str, Any]:
    items = [node(name) for name in names]
    return {"Pod": pod(), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}


CHUNKED_HEAD = (
    b"POST /filter HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def recorded(recording: str, *verbs: str) -> list[tuple[str, str]]:
    """Return verb and body of what a real kube-scheduler sent, in order."""
    calls = [(call.verb, call.body) for call in recorded_requests(recording)]
    return [call for call in calls if not verbs or call[0] in verbs]
