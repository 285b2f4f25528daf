"""What the filter and scorer services share: sessions, plugins and state.

A service brings its engine and how results look on the wire; this module applies states and runs
cycles in the order in which they came.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc
import msgspec
import structlog

from moorage.errors import ConfigurationError
from moorage.execution import Supervisor
from moorage.models import decode_node
from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot import Nodes
from moorage.snapshot.snapshot import MAX_NODES
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import CycleInput, PluginHost, Replica
from moorage_host.plugins.host import Policy
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import Engine
from moorage_host.process.metrics import count_background_failure
from moorage_host.rpc.convert import (
    from_duration,
    kind_from_proto,
    node_from_proto,
    object_name_from_proto,
    pod_from_proto,
)
from moorage_host.rpc.describe import describe_plugins
from moorage_host.rpc.errors import CallError, report

Run = TypeVar("Run")
T = TypeVar("T")

SessionRequest = filter_pb2.FilterServiceSessionRequest | scorer_pb2.ScorerServiceSessionRequest
ByHandRequest = filter_pb2.FilterRequest | scorer_pb2.ScoreRequest

log = structlog.get_logger()

YIELD_AFTER = 256
"""Objects of a state that are applied before other work of the process gets a turn."""


class CycleOutcome(msgspec.Struct, Generic[Run], frozen=True):
    """A cycle that went well: its nodes in order, the engine's result, and the time it took."""

    nodes: Nodes
    run: Run
    generation: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Wire(Generic[Run]):
    """How a service's answers look on the wire.

    Attributes:
        response: Makes an answer of the session, which has `hello`, `acknowledgement` or `result`.
        engine: Returns what runs the cycle of a request.
        encode: Of a request and its outcome, fills in the result.
    """

    response: Callable[..., Any]
    engine: Callable[[Any], Engine[Run]]
    encode: Callable[[Any, CycleOutcome[Run], Any], None]


class CycleService(Generic[Run]):
    """Runs one kind of engine for sessions and for people, never two cycles at a time."""

    def __init__(
        self,
        registry: Registry,
        engine: Engine[Run],
        *,
        cycle_state_bytes: int = CYCLE_STATE_BYTES,
        max_nodes: int = MAX_NODES,
    ) -> None:
        """Find plugins in *registry*; people's cycles run on *engine*; see `PluginHost`.

        A session may have *max_nodes* nodes.
        """
        self.host = PluginHost(
            registry,
            cycle_state_bytes=cycle_state_bytes,
            count_failure=count_background_failure,
        )
        self.latest = Replica(max_nodes=max_nodes)
        self._max_nodes = max_nodes
        self.replica_name = uuid.uuid4().hex[:12]
        self._engine = engine
        # A cycle may wait in a plugin's `prepare`; states and other cycles wait for it.
        self._turn = asyncio.Lock()
        self._sessions: set[asyncio.Task[Any]] = set()
        self._retiring: set[asyncio.Task[None]] = set()

    def hello(self) -> pb.Hello:
        """Greet the caller of a session."""
        return pb.Hello(replica=self.replica_name, plugins=describe_plugins(self.host.registry))

    def plugins(self) -> list[pb.Plugin]:
        """Describe the plugins of the registry, and what fails in their background."""
        return describe_plugins(self.host.registry, self.host.background_problems())

    async def apply(self, replica: Replica, state: pb.State) -> str:
        """Apply a change to a session's replica; return why its policy is refused, if it is.

        Raises:
            msgspec.DecodeError: A node or pod is malformed.
            KeyError: A pod's row has no node, or an object is of a kind that was not announced.
        """
        former = replica.policy
        # Plugins start before the state's turn has come, and former ones stop in the background:
        # cycles wait for neither.
        chosen, error = await self._policy(former, state.policy)
        try:
            async with self._turn:
                replica.policy = chosen
                await apply_state(replica, state)
                if not state.partial:
                    replica.generation = state.generation
                    self.latest = replica
        finally:
            if chosen is not former:
                self._retire(former if replica.policy is chosen else chosen)
        return error

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Replica]:
        """Keep the state of one session for as long as it lasts."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        self._sessions.add(task)
        replica = Replica(max_nodes=self._max_nodes)
        try:
            yield replica
        finally:
            self._sessions.discard(task)
            await self.host.release(replica.policy)

    async def drain(self) -> None:
        """End the sessions, each between two cycles; gateways go on with other replicas."""
        async with self._turn:
            for task in self._sessions:
                task.cancel()

    async def close(self) -> None:
        """Stop the plugins."""
        if self._retiring:
            await asyncio.wait(self._retiring)
        await self.host.close()

    async def cycle(
        self, replica: Replica, cycle: pb.Cycle, engine: Engine[Run]
    ) -> CycleOutcome[Run]:
        """Run a cycle of a session; a session without state uses the latest one's."""
        deadline = time.perf_counter() + from_duration(cycle.timeout)
        pod, _ = pod_from_proto(cycle.pod)
        work = CycleInput(
            profile=cycle.profile,
            pod=pod,
            candidates=cycle.candidates,
            names=tuple(cycle.node_names),
            plugin=cycle.plugin,
            overrides={node.row: decode_node(node.json) for node in cycle.overrides},
            excluded_pods=tuple(cycle.excluded_pods),
        )
        chosen = replica if replica.generation else self.latest
        return await self._run(chosen, work, engine, deadline)

    async def by_hand(self, request: ByHandRequest, seconds: float | None) -> CycleOutcome[Run]:
        """Run a cycle for a person, on the latest state or on the nodes that the request brings."""
        deadline = float("inf") if seconds is None else time.perf_counter() + seconds
        pod, _ = pod_from_proto(request.pod)
        replica = self.latest
        given = tuple(node_from_proto(node)[0] for node in request.nodes)
        work = CycleInput(
            profile=request.profile or pod.spec.scheduler_name,
            pod=pod,
            names=tuple(n.name for n in given) or tuple(request.node_names) or None,
            plugin=request.plugin,
            given=given,
        )
        return await self._run(replica, work, self._engine, deadline)

    async def _run(
        self, replica: Replica, work: CycleInput, engine: Engine[Run], deadline: float
    ) -> CycleOutcome[Run]:
        start = time.perf_counter()
        async with self._turn:
            nodes, run = await replica.run(work, engine, Supervisor(deadline=deadline))
        seconds = time.perf_counter() - start
        return CycleOutcome(nodes, run, replica.generation, seconds)

    async def _policy(self, former: Policy, policy: pb.Policy) -> tuple[Policy, str]:
        """Return what a session runs from here on, and why that is not *policy*."""
        if not policy.revision or policy.revision == former.revision:
            return former, ""
        try:
            chosen = await self.host.use(policy.revision, policy.json)
        except (ConfigurationError, msgspec.ValidationError) as problem:
            log.warning("A policy is refused", error=str(problem))
            return former, str(problem)
        log.info("A policy is ready", revision=policy.revision)
        return chosen, ""

    def _retire(self, policy: Policy) -> None:
        task = asyncio.create_task(self.host.release(policy))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


async def run_session(
    service: CycleService[Run], requests: AsyncIterator[SessionRequest], wire: Wire[Run]
) -> AsyncIterator[Any]:
    """Answer the requests of one session, in order.

    Raises:
        CallError: A state cannot be applied (INVALID_ARGUMENT); the caller starts again.
    """
    yield wire.response(hello=service.hello())
    async with service.session() as replica:
        async for request in requests:
            if request.HasField("state"):
                policy_error = await _applied(service, replica, request.state)
                if policy_error or not request.HasField("cycle"):
                    yield wire.response(acknowledgement=_acknowledgement(replica, policy_error))
            if request.HasField("cycle"):
                yield await _answer(service, replica, request, wire)


async def _applied(service: CycleService[Run], replica: Replica, state: pb.State) -> str:
    try:
        return await service.apply(replica, state)
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise CallError(
            grpc.StatusCode.INVALID_ARGUMENT, f"cannot apply the state: {error}"
        ) from error


def _acknowledgement(replica: Replica, policy_error: str) -> pb.Acknowledgement:
    return pb.Acknowledgement(
        generation=replica.generation,
        policy_revision=replica.policy.revision,
        policy_error=policy_error,
    )


async def _answer(
    service: CycleService[Run], replica: Replica, request: SessionRequest, wire: Wire[Run]
) -> Any:
    answer = wire.response()
    result = answer.result  # filled in where it is, because messages copy what they are made of
    try:
        outcome = await service.cycle(replica, request.cycle, wire.engine(request))
        wire.encode(request, outcome, result)
    except Exception as error:  # noqa: BLE001 - every cycle gets an answer
        result.Clear()
        code, result.status.message = report(error)
        result.status.code = code.value[0]
    result.cycle = request.cycle.id
    return answer


async def apply_state(replica: Replica, state: pb.State) -> None:
    """Apply all of a change but its policy and generation.

    Raises:
        msgspec.DecodeError: A node, pod or object is malformed.
        KeyError: A pod's row has no node, or an object is of a kind that was not announced.
        ValueError: Two rows have nodes of one name.
    """
    if state.full:
        replica.clear()
    snapshot = replica.snapshot
    for uid in state.removed_pods:
        snapshot.remove_pod(uid)
    for row in state.removed_rows:
        snapshot.remove_row(row)
    if state.nodes:
        await _in_parts([(n.row, n.json) for n in state.nodes], replica.set_nodes)
    if (state.nodes or state.removed_rows) and not state.partial:
        snapshot.check_names()
    if state.pods:
        await _in_parts([(p.row, p.json) for p in state.pods], replica.place_pods)
    if state.kinds or state.removed_kinds:
        snapshot.objects.open(kind_from_proto(kind) for kind in state.kinds)
        snapshot.objects.close(kind_from_proto(kind) for kind in state.removed_kinds)
    for reference in state.removed_objects:
        snapshot.objects.remove(object_name_from_proto(reference))
    if state.objects:
        objects = [(object_name_from_proto(o.reference), o.json) for o in state.objects]
        await _in_parts(objects, replica.put_objects)


async def _in_parts(objects: Sequence[T], apply: Callable[[Sequence[T]], None]) -> None:
    for start in range(0, len(objects), YIELD_AFTER):
        if start:  # a few changes, as most cycles bring along, are not worth a turn
            await asyncio.sleep(0)
        apply(objects[start : start + YIELD_AFTER])
