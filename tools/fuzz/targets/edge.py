"""Bodies of kube-scheduler's calls: through the app alone, and through a whole gateway."""

import json
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
from aiohttp import HttpVersion11, web
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry

from cli.up.processes import free_ports
from gateway.cycle import Cycle
from gateway.edge import Edge, EdgeSettings
from tools.fuzz.targets.target import Target, WrongError, mutated_json, require
from tools.inprocess.edge import Filtered, ScriptedCycles
from tools.inprocess.gateway import (
    Gateway,
    binder_service,
    filter_service,
    gateway,
    ready,
    scorer_service,
)

PATHS = {
    b"f": "/filter",
    b"p": "/prioritize",
    b"b": "/bind",
    b"e": "/preempt",
    b"F": "/filter/NodeResourcesFit",
    b"P": "/prioritize/ImageLocality",
}
"""The first byte of a case; the rest is the body."""

_JSON = {"Content-Type": "application/json", "Host": "127.0.0.1"}
ALLOWED = {"/preempt": (200, 400, 503)}

TOKENS = (
    *('"Pod":', '"Nodes":', '"NodeNames":', '"metadata":', '"spec":', '"items":', '"uid":'),
    *('"containers":', '"resources":', '"requests":', '"affinity":', "null", "[]", "{}", '"500m"'),
    *('"nodeSelectorTerms":', '"matchExpressions":', '"operator":', '"NodeNameToVictims":'),
)


class Bodies(Target):
    """`gateway.edge`: reading bodies and writing answers, with cycles that let every node pass."""

    name = "bodies"
    share = 50
    seconds = 3e-4
    tokens = TOKENS
    longest = 8192

    async def open(self, stack: AsyncExitStack) -> None:
        self._registry = CollectorRegistry()
        cycles = ScriptedCycles(on_filter=_first_half)
        self._edge = Edge(cycles, EdgeSettings(), self._registry)
        self._cycles = cycles

    async def case(self, data: bytes) -> None:
        call = _Call(PATHS.get(data[:1], "/filter"), data[1:])
        route = self._edge._paths.find(call.path)  # what comes before needs a connection
        assert route is not None
        response = await self._edge.respond(cast("web.BaseRequest", call), route)
        await response.prepare(cast("web.BaseRequest", call))
        check_answer(call.path, response.status, _body(call.writer.written))
        self._cycles.scheduling.clear()
        self._cycles.preempts.clear()
        self._cycles.binds.clear()
        check_metrics(self._registry)

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        changed = mutated_json(data[1:], random)
        return None if changed is None else data[:1] + changed


class Cycles(Target):
    """A gateway with its services and an API server: what plugins do with such pods."""

    name = "cycles"
    share = 6
    seconds = 8e-3
    tokens = TOKENS
    longest = 4096

    async def open(self, stack: AsyncExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "policy.yaml").write_text(POLICY)
        (port,) = free_ports(1)
        filters = await stack.enter_async_context(filter_service())
        scorer = await stack.enter_async_context(scorer_service())
        self._gateway: Gateway = await stack.enter_async_context(
            gateway(
                folder,
                filters=filters,
                scorer=scorer,
                binder=f"127.0.0.1:{port}",
                config=folder / "policy.yaml",
                cache_bytes=1 << 20,
                http_timeout=8.0,
            )
        )
        await stack.enter_async_context(binder_service(folder, port=port))
        await self._gateway.node("n1", "n2", "n3")
        for number in range(3):
            self._gateway.api.pod(f"on-{number}", labels={"app": "web"}, nodeName=f"n{number + 1}")
        await ready(self._gateway)

    async def case(self, data: bytes) -> None:
        path = PATHS.get(data[:1], "/filter")
        async with self._gateway.session.post(
            self._gateway.url + path, data=data[1:], headers=_JSON
        ) as response:
            check_answer(path, response.status, await response.read())
        check_metrics(self._gateway.registry)

    mutated = Bodies.mutated


POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: moorage
  plugins:
    multiPoint: {enabled: [{name: InTree}]}
    filter: {enabled: [{name: NodeGroup}, {name: StatefulSetZone}, {name: OneNodePerPipelineRun}]}
    score: {enabled: [{name: ImageScore}, {name: RequestedToCapacityRatio}]}
"""


class _Writer:
    """Keeps what is written to a connection."""

    def __init__(self) -> None:
        self.written = bytearray()

    async def write(self, data: bytes) -> None:
        self.written += data

    async def write_eof(self, data: bytes = b"") -> None:
        self.written += data

    async def write_headers(self, line: str, headers: Any) -> None:
        del headers
        self.written += f"{line}\r\n\r\n".encode()


class _Content:
    """The body of a call, which has arrived."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def at_eof(self) -> bool:
        return not self._body

    async def readchunk(self) -> tuple[bytes, bool]:
        body, self._body = self._body, b""
        return body, True


class _Call:
    """A call as aiohttp hands it over, without the connection."""

    method = "POST"
    version = HttpVersion11
    keep_alive = True
    transport = None
    content_type = "application/json"

    def __init__(self, path: str, body: bytes) -> None:
        self.path = path
        self.headers: CIMultiDict[str] = CIMultiDict(_JSON)
        self.content = _Content(body)
        self.content_length = len(body)
        self.writer = _Writer()
        self.task = None

    @property
    def _payload_writer(self) -> _Writer:
        return self.writer

    async def _prepare_hook(self, _: Any) -> None:
        return


async def _first_half(call: Cycle) -> Filtered:
    """Read what every cycle reads, and let half of the nodes pass."""
    _ = call.profile, call.pod.namespace
    mask = np.zeros(len(call.nodes), np.bool_)
    mask[: (len(call.nodes) + 1) // 2] = True
    return Filtered(feasible=call.nodes.restricted(mask))


def _body(written: bytearray) -> bytes:
    return bytes(written).partition(b"\r\n\r\n")[2]


def check_answer(path: str, status: int, body: bytes) -> None:
    """Refuse an answer that kube-scheduler could not read, or that hides a failure."""
    require(status in ALLOWED.get(path, (200,)), "a status that is not expected", (status, body))
    require(b"internal error" not in body, "internal error", body)
    if status != 200:
        return
    try:
        answer = json.loads(body.decode(), parse_constant=_no_constant)
    except ValueError as error:
        raise WrongError("an answer that is no JSON", (error, body)) from error
    if isinstance(answer, dict):
        require(len(str(answer.get("Error", ""))) <= 2048, "a long error", body[:3000])
    else:
        require(all(0 <= each["Score"] <= 1000 for each in answer), "a score", body)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def check_metrics(registry: CollectorRegistry) -> None:
    """Refuse failures that the answer to prioritize cannot show."""
    requests = registry.restricted_registry([_REQUESTS])  # all metrics would take most of the time
    for metric in requests.collect():
        for sample in metric.samples:
            if sample.name != _REQUESTS or sample.labels["result"] != "internal":
                continue
            verb = sample.labels["verb"]
            known = _seen.get((id(registry), verb), 0.0)
            _seen[id(registry), verb] = sample.value
            require(sample.value <= known, f"an unexpected failure of {verb}")


_REQUESTS = "moorage_extender_requests_total"

_seen: dict[tuple[int, str], float] = {}
