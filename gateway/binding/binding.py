"""Sends binds to the binder, and keeps the pod assumed on its node meanwhile."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import grpc
import grpc.aio
import msgspec

from gateway.binding.connection import BinderConnection
from gateway.binding.settling import Settling
from gateway.binding.stream import BinderError
from gateway.binding.unseen import UnseenPods
from gateway.calls import BindCall, CallFailedError
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.cluster.state import ClusterState
from gateway.decisions.attempts.arrays import KeptArrays
from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.from_protobuf import bind_plugin_records
from gateway.decisions.records import BindRecord, Decision
from gateway.decisions.sentences import summary
from gateway.leadership.term import StaleTermError, Term
from moorage.backoff import Backoff
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2

REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
"""Answers after which the pod is certainly not bound to this node by this call."""

ASK_SECONDS = 10.0
"""How long the binder may take to list its plugins, until it is asked again."""


STALE_EPOCH = "STALE_EPOCH"
"""The binder's reason when it has seen a higher epoch."""

NOT_SENT = "the bind was not sent, since another gateway has taken over"


class BindPolicy(Protocol):
    """Knows the policy; learns what the binder can run."""

    problem: str

    def learn(self, kind: str, plugins: Sequence[types_pb2.Plugin]) -> None:
        """Take over what a kind of service can run."""

    async def for_bind(self) -> types_pb2.Policy | None:
        """Return the bind plugins of all profiles, once they are known; None if there are none."""


class Binding:
    """Binds pods through the binder, any number at a time.

    Attributes:
        connection: To the binder.
        unseen: Pods of calls that the watch has not shown yet.
        settling: Finds out about unknown outcomes.
        problems: What fails in the background of its plugins, by their names.
    """

    def __init__(
        self,
        connection: BinderConnection,
        state: ClusterState,
        policy: BindPolicy,
        cycle_states: CycleStates,
        arrays: KeptArrays,
        generation: Callable[[], int],
        *,
        holder: str,
        term: Term,
        settling: Settling,
        unseen: UnseenPods,
    ) -> None:
        """Call the binder on *connection* in a *term*; have it run the bind plugins of *policy*.

        They get what other plugins have kept for them in *cycle_states*, what decided by *arrays*,
        and the state of *generation* that *holder* sends, if they read it.
        """
        self.connection = connection
        self.problems: Mapping[str, str] = {}
        self._state = state
        self.unseen = unseen
        self._policy = policy
        self._cycle_states = cycle_states
        self._arrays = arrays
        self._generation = generation
        self._holder = holder
        self._term = term
        self.settling = settling

    def background_problems(self) -> Iterator[str]:
        """Yield what fails in the background of the binder's plugins."""
        for plugin, problem in self.problems.items():
            yield f"plugin {plugin} in binder at {self.connection.target}: {problem}"

    async def follow_plugins(self, interval: float) -> None:
        """Ask the binder every *interval* seconds which plugins it has: it may be another one."""
        known: Sequence[types_pb2.Plugin] | None = None
        while True:
            plugins = await self._plugins()
            if plugins is not None:
                self.problems = _take_problems(plugins)
            if plugins is not None and plugins != known:
                self._policy.learn("bind", plugins)
                known = plugins
            await asyncio.sleep(interval)

    async def bind(self, call: BindCall, decision: Decision | None, epoch: int) -> None:
        """Bind the pod, or find it bound to this node already; note the outcome in *decision*.

        Raises:
            StaleTermError: The term of *epoch* is over, and the pod is not bound by this call.
            CallFailedError: It is not bound, or that is not known.
        """
        start = time.perf_counter()
        pod = self.unseen.pod(call.uid)
        if pod is not None and not pod.spec.node_name:
            self._state.assume(pod, call.node)
        self.settling.begin(call)
        error = ""
        plugins: Sequence[pb.BindPluginReport] = ()
        try:
            request = await self._request(call, decision)
            request.epoch = epoch
            request.profile = pod.spec.scheduler_name if pod else ""
            plugins = await self._bind(call, request)
            self._state.confirm(call.uid)
            self.settling.end(call)
            self._cycle_states.end(call.uid)
        except CallFailedError as failure:
            error = str(failure)
            self._state.forget(call.uid)
            self.settling.end(call)
            raise
        except BinderError as failure:
            error, plugins = self._failed(call, failure), failure.plugins
            if failure.reason == STALE_EPOCH:
                self._term.end(epoch, str(failure))
                raise StaleTermError(error) from failure
            raise CallFailedError(error) from failure
        except BaseException:
            self._state.confirm(call.uid)  # unknown outcome: assumed, but not for ever
            raise
        finally:
            if decision is not None:
                decision.bind = BindRecord(
                    node=call.node,
                    seconds=time.perf_counter() - start,
                    error=error,
                    plugins=bind_plugin_records(plugins),
                )

    async def close(self) -> None:
        """Hang up."""
        await self.connection.close()

    async def _plugins(self) -> Sequence[types_pb2.Plugin] | None:
        request = pb.BinderServiceListPluginsRequest()
        try:
            answer = await self.connection.stub.ListPlugins(
                request, timeout=ASK_SECONDS, wait_for_ready=True
            )
        except grpc.aio.AioRpcError:
            return None
        return list(answer.plugins)

    async def _request(self, call: BindCall, decision: Decision | None) -> pb.BindRequest:
        try:
            async with asyncio.timeout_at(call.deadline - ANSWER_SECONDS):
                policy = await self._policy.for_bind()
        except TimeoutError as error:
            missing = "Moorage has no policy yet; see /readyz of its gateway"
            unreached = "binder service is not available"
            raise CallFailedError(missing if self._policy.problem else unreached) from error
        why = None
        if decision is not None:
            why = summary(decision, call.node, self._arrays.totals_of(decision.id))
        return pb.BindRequest(
            namespace=call.namespace,
            name=call.name,
            uid=call.uid,
            node=call.node,
            policy=policy,
            decision=msgspec.json.encode(why) if why else b"",
            cycle_state=self._cycle_states.at(call.uid, call.node) if policy else None,
            generation=self._generation(),
            holder=self._holder,
            traceparent=call.traceparent,
        )

    async def _bind(self, call: BindCall, request: pb.BindRequest) -> Sequence[pb.BindPluginReport]:
        """Repeat the bind while the binder cannot be reached: it is idempotent."""
        backoff = Backoff(0.02, 0.5)
        loop = asyncio.get_running_loop()
        while True:
            if not self._term.is_current(request.epoch):
                raise StaleTermError(NOT_SENT)
            try:
                return await self.connection.stream.bind(request, call.deadline - ANSWER_SECONDS)
            except BinderError as failure:
                pause = backoff.next()
                again = failure.code is grpc.StatusCode.UNAVAILABLE
                if not again or loop.time() + pause >= call.deadline:
                    raise
                await asyncio.sleep(pause)

    def _failed(self, call: BindCall, failure: BinderError) -> str:
        if failure.code in REFUSALS:
            self._state.forget(call.uid)
            self.settling.end(call)
        else:
            # It may be bound, now or later: keep its place until the watch shows that, or the API
            # server says that it is not.
            self._state.confirm(call.uid)
        return f"binder service: {failure}"


def _take_problems(plugins: Sequence[types_pb2.Plugin]) -> Mapping[str, str]:
    """Remove from plugins what fails in their background: it says nothing about what they are."""
    problems = {each.name: each.background_problem for each in plugins if each.background_problem}
    for plugin in plugins:
        plugin.ClearField("background_problem")
    return problems
