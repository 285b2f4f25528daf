"""One gateway's session with a replica of filter or scorer: its state and its cycles, in order.

A session is a stream. The gateway sends changes of its state and cycles, each message whatever has
come up since the last one; the replica applies and answers them one after the other. Order is what
makes it right: what a cycle must see was sent before it, on the same stream, so no message names
the state that it needs, and no answer has to be checked against one. Each session has a snapshot,
a policy and a generation of its own (`Replica`), which end with the stream; a gateway that loses it
opens another and sends everything again.

A message costs little here, since every cycle of the cluster is one: it is read, its state applied,
its cycle run (`Replica.run`, then the engine, then the plugins), and the answer filled in where it
will be sent from. One lock (`_turn`) keeps cycles and states of all sessions apart, because plugin
instances are shared. Ad-hoc calls, of people and other clients, take the same lock for a chunk of
their nodes at a time (`adhoc`).
"""

import asyncio
import time
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any, Generic, TypeVar

import grpc
import msgspec
import structlog
from opentelemetry.trace import SpanKind, Tracer

from moorage import __version__
from moorage.errors import ConfigurationError
from moorage.execution import PluginRun, Supervisor, mark
from moorage.models import NodeManifest, Pod, decode_node, decode_pod
from moorage.v1 import replica_pb2
from moorage.v1 import types_pb2 as pb
from moorage.v1.replica_pb2 import CycleResult, SessionRequest, SessionResponse
from moorage.v1.replica_pb2_grpc import ReplicaServiceServicer
from moorage_host.plugins import CycleInput, PluginHost, Replica
from moorage_host.plugins.host import Policy
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import NODE_SECONDS, STEP_SECONDS, Engine
from moorage_host.process.admin import Check
from moorage_host.process.metrics import count_background_failure
from moorage_host.rpc.adhoc import AdhocRequest, Chunks, Throttle, check_count, given_nodes
from moorage_host.rpc.convert import pod_from_proto
from moorage_host.rpc.describe import describe_plugins, node_state, object_counts, report_runs
from moorage_host.rpc.errors import report
from moorage_host.rpc.former import MarkFile
from moorage_host.rpc.serve import Servicer
from moorage_host.rpc.settings import CycleSettings
from moorage_host.rpc.state import MISTAKES, apply_state, check_room, refusal_of
from moorage_host.tracing.spans import plugin_spans, sampled, span

Run = TypeVar("Run")

Context = grpc.aio.ServicerContext[Any, Any]

_UNTRACED = nullcontext()

MARKED = mark.CYCLE.stop - mark.CYCLE.start

log = structlog.get_logger()


class AdhocOutcome(msgspec.Struct, Generic[Run], frozen=True):
    """An ad-hoc call that went well: its nodes in order, the engine's result, the generation."""

    names: Sequence[str]
    run: Run
    generation: int


class ReplicaServicer(Servicer, ReplicaServiceServicer, Generic[Run]):
    """Serves sessions of gateways, and people, in the role of filter or scorer.

    A role inherits from this. It says which engine runs a cycle, how its result is encoded, and how
    a call by hand runs it chunk by chunk.

    Attributes:
        host: Runs the plugins.
        throttle: Spreads the work of ad-hoc calls.
    """

    def __init__(self, registry: Registry, settings: CycleSettings | None = None) -> None:
        """Run the plugins of *registry* on sessions within the limits of *settings*."""
        settings = settings or CycleSettings()
        self.host = PluginHost(
            registry,
            cycle_state_bytes=settings.max_cycle_state_bytes,
            count_failure=count_background_failure,
        )
        self.throttle = Throttle()
        self._name = uuid.uuid4().hex[:12]
        self._settings = settings
        self._tracer: Tracer | None = None
        # A cycle may wait in a plugin's `prepare`; states and other cycles wait for it.
        self._turn = asyncio.Lock()
        self._sessions: dict[asyncio.Task[Any], Replica] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._marks: MarkFile | None = None

    @abstractmethod
    def engine(self, cycle: pb.Cycle) -> Engine[Run]:
        """Return what runs a session's cycle."""

    @abstractmethod
    def encode(self, run: Run, result: CycleResult) -> Sequence[PluginRun]:
        """Fill in how the engine ran; return what the plugins did."""

    @abstractmethod
    async def run_chunks(self, chunks: Chunks[Run]) -> Run:
        """Run the engine for an ad-hoc call, chunk by chunk."""

    async def Session(
        self, request_iterator: AsyncIterator[SessionRequest], context: Context
    ) -> AsyncIterator[SessionResponse]:
        """Keep a gateway's state and answer its cycles, in order.

        Raises:
            CallError: A state cannot be applied (INVALID_ARGUMENT), or too many sessions are open
                (RESOURCE_EXHAUSTED); the caller starts again.
        """
        async with self._opened() as replica:
            hello = pb.Hello(
                replica=self._name,
                plugins=describe_plugins(self.host.registry),
                moorage_version=__version__,
                former=self._marks.former if self._marks else None,
            )
            yield SessionResponse(hello=hello)
            async for request in request_iterator:
                has_cycle = request.HasField("cycle")
                if request.HasField("state"):
                    problem = await self._apply(replica, request.state)
                    if problem or not has_cycle:
                        yield SessionResponse(
                            acknowledgement=pb.Acknowledgement(
                                generation=replica.generation,
                                policy_revision=replica.policy.revision,
                                policy_error=problem,
                            )
                        )
                if has_cycle:
                    yield await self._answer(replica, request)
                    if not self._turn.locked():  # a cycle of another session may run
                        mark.memory[mark.POD] = 0

    async def _answer(self, replica: Replica, request: SessionRequest) -> SessionResponse:
        """Run a cycle; a session without state uses that of ad-hoc calls."""
        start = time.perf_counter()
        answer, cycle = SessionResponse(), request.cycle
        result = answer.result  # filled in where it is, because messages copy what they are made of
        try:
            pod, _ = pod_from_proto(cycle.pod)
            work = CycleInput(
                profile=cycle.profile,
                pod=pod,
                candidates=cycle.candidates,
                names=tuple(cycle.node_names),
                plugin=cycle.plugin,
                overrides=_overrides(cycle) if cycle.overrides else {},
                excluded_pods=tuple(cycle.excluded_pods),
                added_pods=_added_pods(cycle) if cycle.added_pods else (),
            )
            timeout = cycle.timeout
            supervisor = Supervisor(
                owner=(pod.metadata.namespace, pod.metadata.name),
                deadline=start + timeout.seconds + timeout.nanos / 1e9,
            )
            if cycle.refused:
                supervisor.refused = dict(cycle.refused)
            engine, used = self.engine(cycle), replica if replica.generation else self.current
            tracer = self._tracer if cycle.traceparent else None
            with self._traced(tracer, cycle, supervisor, start) if tracer else _UNTRACED:
                async with self._turn:
                    pod_mark = f"\0{'/'.join(supervisor.owner)}".encode()[:MARKED]
                    mark.memory[mark.CYCLE] = pod_mark.ljust(MARKED, b"\0")
                    _, run = await used.run(work, engine, supervisor)
            result.generation = used.generation
            runs = self.encode(run, result)
            node_seconds = report_runs(result, runs)
            for took, seconds in (
                (result.node_duration, node_seconds),
                (result.duration, time.perf_counter() - start),
            ):
                took.seconds, took.nanos = divmod(round(seconds * 1e9), 1_000_000_000)
        except Exception as error:  # noqa: BLE001 - every cycle gets an answer
            result.Clear()
            code, result.status.message = report(error)
            result.status.code = code.value[0]
        result.cycle = cycle.id
        return answer

    async def _apply(self, replica: Replica, state: pb.State) -> str:
        """Apply a change to a session's replica; return why its policy is refused, if it is."""
        former, problem = replica.policy, ""
        chosen = former
        # Plugins start before the state's turn has come, and former ones stop in the background:
        # cycles wait for neither.
        if state.HasField("policy") and state.policy.revision not in ("", former.revision):
            chosen, problem = await self._started(state.policy, former)
        try:
            async with self._turn:
                replica.policy = chosen
                await apply_state(replica, state)
                replica.step = STEP_SECONDS + NODE_SECONDS * len(replica.snapshot)
                if not state.partial:
                    replica.generation = state.generation
        except MISTAKES as error:
            raise refusal_of(error) from error
        finally:
            if chosen is not former:
                unused = former if replica.policy is chosen else chosen
                task = asyncio.create_task(self.host.release(unused))
                self._retiring.add(task)
                task.add_done_callback(self._retiring.discard)
        return problem

    async def _started(self, policy: pb.Policy, former: Policy) -> tuple[Policy, str]:
        """Return what a session runs from here on, and why that is not *policy*."""
        try:
            chosen = await self.host.use(policy.revision, policy.json)
        except (ConfigurationError, msgspec.ValidationError) as problem:
            log.warning("A policy is refused", error=str(problem))
            return former, str(problem)
        log.info("A policy is ready", revision=policy.revision)
        return chosen, ""

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Replica]:
        """Keep the state of one session for as long as it lasts."""
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

    @contextmanager
    def _traced(
        self, tracer: Tracer, cycle: pb.Cycle, supervisor: Supervisor, start: float
    ) -> Iterator[None]:
        """Have spans of a cycle that began at *start*, and of its plugins."""
        parent = sampled(cycle.traceparent)
        if parent is None:
            yield
            return
        about = {"moorage.profile": cycle.profile}
        kind = SpanKind.SERVER
        with span(tracer, "replica cycle", parent, kind=kind, start=start, attributes=about):
            try:
                yield
            finally:
                plugin_spans(supervisor.runs)

    @property
    def current(self) -> Replica:
        """The state for ad-hoc calls: of the session that is open longest, if it has nodes.

        A session that began later, such as one by hand, does not hide it.
        """
        states = [replica for replica in self._sessions.values() if replica.generation]
        return next((state for state in states if len(state.snapshot)), [*states, Replica()][0])

    async def adhoc(self, request: AdhocRequest, seconds: float | None) -> AdhocOutcome[Run]:
        """Run a cycle for a person, on the current state or on the nodes that the request brings.

        Raises:
            CallError: The request is malformed, or is about too many nodes (INVALID_ARGUMENT).
        """
        deadline = float("inf") if seconds is None else time.perf_counter() + seconds
        async with self.throttle.chunk():
            pod, _ = pod_from_proto(request.pod)
        replica, limits = self.current, self._settings
        given = await given_nodes(request, limits.adhoc_manifests, self.throttle)
        names = list(request.node_names) or [node.name for node in given]
        if not names:
            check_count(len(replica.snapshot), limits.adhoc_nodes)
            names = replica.snapshot.nodes().names
        work = CycleInput(
            profile=request.profile or pod.spec.scheduler_name,
            pod=pod,
            names=tuple(dict.fromkeys(names)),
            plugin=request.plugin,
            given=given,
            by_hand=True,
        )
        check_count(len(work.names or ()), limits.adhoc_nodes)
        chunks: Chunks[Run] = Chunks(
            replica,
            work,
            turn=self._turn,
            throttle=self.throttle,
            is_open=lambda: not replica.generation or replica in self._sessions.values(),
            deadline=deadline,
        )
        run = await self.run_chunks(chunks)
        return AdhocOutcome(chunks.names, run, chunks.generation)

    async def FollowRetries(
        self, request: replica_pb2.FollowRetriesRequest, context: Context
    ) -> AsyncIterator[replica_pb2.FollowRetriesResponse]:
        """Report plugins that ask for another attempt on the pods that they rejected."""
        await context.send_initial_metadata(())
        async for plugin, reason, namespace in self.host.retries.follow():
            yield replica_pb2.FollowRetriesResponse(
                plugin=plugin, reason=reason, namespace=namespace
            )

    async def FollowProblems(
        self, request: replica_pb2.FollowProblemsRequest, context: Context
    ) -> AsyncIterator[replica_pb2.FollowProblemsResponse]:
        """Report what fails in the background of plugins."""
        await context.send_initial_metadata(())
        async for problems in self.host.follow_problems():
            yield replica_pb2.FollowProblemsResponse(problems=problems)

    async def ListPlugins(
        self, request: replica_pb2.ListPluginsRequest, context: Context
    ) -> replica_pb2.ListPluginsResponse:
        """List the plugins of the registry, with what fails in their background."""
        plugins = describe_plugins(self.host.registry, self.host.background_problems())
        return replica_pb2.ListPluginsResponse(plugins=plugins)

    async def GetState(
        self, request: replica_pb2.GetStateRequest, context: Context
    ) -> replica_pb2.GetStateResponse:
        """Show the state that ad-hoc calls use, and the named nodes in full.

        Raises:
            CallError: They are too many (INVALID_ARGUMENT), or one is unknown (NOT_FOUND).
        """
        check_count(len(request.node_names), self._settings.adhoc_nodes)
        replica = self.current
        response = replica_pb2.GetStateResponse(
            generation=replica.generation,
            policy_revision=replica.policy.revision,
            node_count=len(replica.snapshot),
            pod_count=replica.snapshot.pod_count,
            object_counts=object_counts(replica),
        )
        await self.throttle.each(
            request.node_names, lambda name: response.nodes.append(node_state(replica, name))
        )
        return response

    def notes(self) -> Mapping[str, Check]:
        """Return what fails in the background of the plugins, and why a policy is refused.

        The service stays ready then: only a gateway that finds it can send it another policy.
        """
        return {"plugins": self.host.background_note, "policy": self.host.policy_note}

    def trace_with(self, tracer: Tracer | None) -> None:
        """Record the spans of cycles that are traced."""
        self._tracer = tracer

    async def drain(self) -> None:
        """End the sessions, each between two cycles; gateways go on with other replicas."""
        self.host.end_reports()
        async with self._turn:
            for task in self._sessions:
                task.cancel()

    async def start(self) -> None:
        """Find out what the process before this one was doing, if it ended without stopping."""
        if self._settings.port:
            self._marks = MarkFile(self._settings.port, self._name)

    async def stop(self) -> None:
        """Stop the plugins."""
        if self._retiring:
            await asyncio.wait(self._retiring)
        await self.host.close()
        if self._marks:
            self._marks.remove()


def _overrides(cycle: pb.Cycle) -> dict[int, NodeManifest]:
    return {node.row: decode_node(node.json) for node in cycle.overrides}


def _added_pods(cycle: pb.Cycle) -> list[tuple[int, Pod]]:
    return [(pod.row, decode_pod(pod.json)) for pod in cycle.added_pods]
