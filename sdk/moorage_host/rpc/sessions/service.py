"""Applies the states of sessions, and runs cycles on them, in the order in which they came.

A service brings its engine and how results look on the wire.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Generic, TypeVar

import grpc
import msgspec
import structlog

from moorage import __version__
from moorage.errors import ConfigurationError
from moorage.execution import Supervisor
from moorage.models import NodeManifest, decode_node
from moorage.snapshot import Nodes
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import CycleInput, PluginHost, Replica
from moorage_host.plugins.host import Policy
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import Engine
from moorage_host.process.metrics import count_background_failure
from moorage_host.rpc.convert import from_duration, node_from_proto, pod_from_proto
from moorage_host.rpc.describe import describe_plugins
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.sessions.by_hand import Steps
from moorage_host.rpc.sessions.pace import Pace
from moorage_host.rpc.sessions.settings import CycleSettings
from moorage_host.rpc.sessions.state import apply_state, check_room
from moorage_host.rpc.sessions.traced import traced_cycle
from moorage_host.tracing.span import SpanSink

Run = TypeVar("Run")

ByHandRequest = filter_pb2.FilterRequest | scorer_pb2.ScoreRequest

InSteps = Callable[[Steps[Run]], Awaitable[Run]]
"""Runs an engine for a call by hand, in steps."""

log = structlog.get_logger()


class CycleOutcome(msgspec.Struct, Generic[Run], frozen=True):
    """A cycle that went well: its nodes in order, the engine's result, and the time it took."""

    nodes: Nodes
    run: Run
    generation: int
    seconds: float


class ByHandOutcome(msgspec.Struct, Generic[Run], frozen=True):
    """A call by hand that went well: its nodes in order, the engine's result, the generation."""

    names: Sequence[str]
    run: Run
    generation: int


class CycleService(Generic[Run]):
    """Runs one kind of engine for sessions and for people, never two cycles at a time.

    Attributes:
        spans: Takes the spans of cycles that are traced.
    """

    spans: SpanSink | None = None

    def __init__(
        self,
        registry: Registry,
        in_steps: InSteps[Run],
        settings: CycleSettings,
    ) -> None:
        """Find plugins in *registry*; calls by hand run as *in_steps* does."""
        self.host = PluginHost(
            registry,
            cycle_state_bytes=settings.max_cycle_state_bytes,
            count_failure=count_background_failure,
        )
        self.replica_name = uuid.uuid4().hex[:12]
        self.pace = Pace()
        self._in_steps = in_steps
        self._settings = settings
        # A cycle may wait in a plugin's `prepare`; states and other cycles wait for it.
        self._turn = asyncio.Lock()
        self._sessions: dict[asyncio.Task[Any], Replica] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    def hello(self) -> pb.Hello:
        """Greet the caller of a session."""
        return pb.Hello(
            replica=self.replica_name,
            plugins=describe_plugins(self.host.registry),
            moorage_version=__version__,
        )

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
        finally:
            if chosen is not former:
                self._retire(former if replica.policy is chosen else chosen)
        return error

    @property
    def current(self) -> Replica:
        """The state for calls by hand: of the session that is open longest, if it has nodes.

        A session that began later, such as one by hand, does not hide it.
        """
        states = [replica for replica in self._sessions.values() if replica.generation]
        return next((state for state in states if len(state.snapshot)), [*states, Replica()][0])

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Replica]:
        """Keep the state of one session for as long as it lasts.

        Raises:
            CallError: Too many are open (RESOURCE_EXHAUSTED).
        """
        limits = self._settings
        check_room(len(self._sessions), limits.max_sessions)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        replica = Replica(
            max_nodes=limits.max_nodes, max_pods=limits.max_pods, max_objects=limits.max_objects
        )
        self._sessions[task] = replica
        try:
            yield replica
        finally:
            del self._sessions[task]
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
        """Run a cycle of a session; a session without state uses that of calls by hand."""
        start = time.perf_counter()
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
        chosen = replica if replica.generation else self.current
        supervisor = Supervisor(deadline=start + from_duration(cycle.timeout))
        with traced_cycle(self.spans, cycle, supervisor, start) or nullcontext():
            async with self._turn:
                nodes, run = await chosen.run(work, engine, supervisor)
        seconds = time.perf_counter() - start
        return CycleOutcome(nodes, run, chosen.generation, seconds)

    async def by_hand(self, request: ByHandRequest, seconds: float | None) -> ByHandOutcome[Run]:
        """Run a cycle for a person, on the current state or on the nodes that the request brings.

        Raises:
            CallError: The request is malformed, or is about too many nodes (INVALID_ARGUMENT).
        """
        deadline = float("inf") if seconds is None else time.perf_counter() + seconds
        pod, _ = pod_from_proto(request.pod)
        replica, given = self.current, await self._given(request)
        names = list(request.node_names) or [node.name for node in given]
        work = CycleInput(
            profile=request.profile or pod.spec.scheduler_name,
            pod=pod,
            names=tuple(dict.fromkeys(names)) or self._all_names(replica),
            plugin=request.plugin,
            given=given,
        )
        self.check_count(len(work.names or ()))
        steps: Steps[Run] = Steps(
            replica,
            work,
            turn=self._turn,
            pace=self.pace,
            is_open=lambda: not replica.generation or replica in self._sessions.values(),
            deadline=deadline,
        )
        run = await self._in_steps(steps)
        return ByHandOutcome(steps.names, run, steps.generation)

    def check_count(self, nodes: int) -> None:
        """Refuse a call by hand that is about too many nodes.

        Raises:
            CallError: It is (INVALID_ARGUMENT).
        """
        most = self._settings.by_hand_nodes
        if nodes > most:
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"{nodes} nodes: a call by hand may be about {most}; name at most so many "
                "(node_names), or raise --by-hand-nodes of the service",
            )

    async def _given(self, request: ByHandRequest) -> tuple[NodeManifest, ...]:
        """Return the nodes that a request brings."""
        most = self._settings.by_hand_manifests
        if len(request.nodes) > most:
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"{len(request.nodes)} nodes: a call by hand may bring {most}; name nodes that the "
                "cluster has (node_names), or raise --by-hand-manifests of the service",
            )
        given: list[NodeManifest] = []
        await self.pace.each(request.nodes, lambda node: given.append(node_from_proto(node)[0]))
        return tuple(given)

    def _all_names(self, replica: Replica) -> tuple[str, ...]:
        self.check_count(len(replica.snapshot))
        return tuple(replica.snapshot.nodes().names)

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
