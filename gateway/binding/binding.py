"""A bind: one message to the binder, one answer, and the pod counts on its node from the first on.

From the call on the pod is *assumed*: it counts on its node for the cycles that follow,
also if the watch has not shown the pod yet. The answer decides what comes then. A pod that is bound
stays assumed until the watch shows it there. A pod that is certainly not bound is forgotten. In
between lies every bind whose outcome nobody knows, since a process or a connection ended: the pod
stays assumed until the watch or the API server says (`gateway.binding.unknown`), and until then it
is put on no other node. Binds are idempotent by (uid, node), so whatever failed may be repeated.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence

import grpc
import grpc.aio
import msgspec

from gateway.binding.client import BinderClient, BinderError
from gateway.binding.unknown import UnknownBinds
from gateway.cluster.state import ClusterState
from gateway.cycle import ANSWER_SECONDS, BindCall, CallFailedError
from gateway.cycle.cycle_states import CycleStates
from gateway.cycle.decision import BindPluginRecord, BindRecord, Decision
from gateway.decisions.nodes import KeptArrays
from gateway.decisions.sentences import summary
from gateway.leadership.term import StaleTermError, Term
from gateway.policy.policy import PolicyHolder
from gateway.replicas.kinds import SCORER
from gateway.replicas.set import NOT_AVAILABLE
from moorage.backoff import Backoff
from moorage.models import Pod
from moorage.models.base import NOTHING
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.rpc.convert import from_duration

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

POLICY = "POLICY"
"""The binder's reason when it cannot use the policy."""

UNSTARTED = f"{SCORER.name}{NOT_AVAILABLE}: "
"""How the error begins of scores that a plugin keeps from being given since it does not start."""

CANNOT_USE = "the binder cannot use the policy: "


PODS_AHEAD = 512
"""Pods that are kept ahead of the watch; the oldest are forgotten first."""


class PodsAheadOfWatch:
    """The newest pods of filter calls that the watch has not shown yet.

    A pod's bind may come before the watch shows the pod. Its place has to count all the same.
    """

    def __init__(self, state: ClusterState) -> None:
        """Keep pods until *state* has them."""
        self._state = state
        self._by_uid: OrderedDict[str, Pod] = OrderedDict()

    def note(self, pod: Pod) -> None:
        """Take over the pod of a call."""
        uid = pod.metadata.uid
        if uid in self._state.pods:
            self._by_uid.pop(uid, None)
            return
        self._by_uid[uid] = pod
        self._by_uid.move_to_end(uid)
        if len(self._by_uid) > PODS_AHEAD:
            self._by_uid.popitem(last=False)

    def pod(self, uid: str) -> Pod | None:
        """Return a pod, from the state or else from its last call."""
        return self._state.pods.get(uid) or self._by_uid.get(uid)

    def forget(self, uid: str) -> None:
        """Forget the call of a pod whose bind has ended."""
        self._by_uid.pop(uid, None)


class BindDispatcher:
    """Binds pods through the binder, any number at a time.

    Attributes:
        client: The connection to the binder.
        pods_ahead: Pods of calls that the watch has not shown yet.
        unknown: Binds whose outcome is not known.
        problems: What fails in the background of the binder's plugins, by their names.
    """

    def __init__(
        self,
        client: BinderClient,
        state: ClusterState,
        policy: PolicyHolder,
        cycle_states: CycleStates,
        arrays: KeptArrays,
        generation: Callable[[], int],
        *,
        holder: str,
        term: Term,
        unknown: UnknownBinds,
        ran: Callable[[Sequence[BindPluginRecord]], object] = list,
    ) -> None:
        """Call the binder through *client* in a *term*; have it run the bind plugins of *policy*.

        They get what other plugins have kept for them in *cycle_states*, what decided by *arrays*,
        and the state of *generation* that *holder* sends, if they read it. *ran* takes what they
        did.
        """
        self.client = client
        self.pods_ahead = PodsAheadOfWatch(state)
        self.unknown = unknown
        self.problems: Mapping[str, str] = {}
        self._state = state
        self._policy = policy
        self._cycle_states = cycle_states
        self._arrays = arrays
        self._generation = generation
        self._holder = holder
        self._term = term
        self._ran = ran
        self._calls: dict[str, BindCall] = {}
        self._refusal = ""
        self._decisions_are_read = True  # by the binder itself, in binds without plugins

    def plugin_problems(self) -> Iterator[str]:
        """Yield what fails in the binder's plugins: at start, and in the background."""
        if self._refusal:
            yield f"binder at {self.client.target} refuses the policy: {self._refusal}"
        for plugin, problem in self.problems.items():
            yield f"plugin {plugin} in binder at {self.client.target}: {problem}"

    def under_way(self, uid: str) -> dict[str, str]:
        """Return the bind of a pod that is under way; see `PodEvidence.bind`."""
        call = self._calls.get(uid)
        return {"node": call.node, **self.client.waits.get(uid, {})} if call else {}

    async def follow_plugins(self, interval: float) -> None:
        """Ask the binder every *interval* seconds which plugins it has: it may be another one."""
        known: Sequence[types_pb2.Plugin] | None = None
        request = pb.BinderServiceListPluginsRequest()
        while True:
            try:
                answer = await self.client.stub.ListPlugins(
                    request, timeout=ASK_SECONDS, wait_for_ready=True
                )
            except grpc.aio.AioRpcError:
                await asyncio.sleep(interval)
                continue
            self._decisions_are_read = not answer.decisions_for_plugins_only
            self.problems = _take_problems(answer.plugins)
            if list(answer.plugins) != known:
                known = list(answer.plugins)
                self._policy.learn("bind", known)
            await asyncio.sleep(interval)

    async def bind(
        self, call: BindCall, pod: Pod | None, decision: Decision | None, epoch: int
    ) -> None:
        """Bind the pod, or find it bound to this node already; note the outcome in *decision*.

        Raises:
            StaleTermError: The term of *epoch* is over, and the pod is not bound by this call.
            CallFailedError: It is not bound, or that is not known.
        """
        start = time.perf_counter()
        annotations: Mapping[str, str] = NOTHING
        if call.uid in self._cycle_states.by_uid:
            annotations = self._cycle_states.annotations(call.uid, call.node)
        if pod is not None and not pod.spec.node_name:
            annotations = self._state.assume(pod, call.node, annotations)
        self.unknown.begin(call)
        self._calls[call.uid] = call
        error, is_certain = "", True
        plugins: Sequence[pb.BindPluginReport] = ()
        try:
            policy = self._policy.bind_policy
            if not self._policy.bind_policy_is_known:
                policy = await self._bind_policy(call)
            request = self._request(call, decision, policy, epoch)
            request.bind.profile = pod.spec.scheduler_name if pod else ""
            if annotations:
                request.bind.annotations.update(annotations)
            backoff: Backoff | None = None
            while True:  # a bind is idempotent
                self._term.require(epoch)
                try:
                    plugins = await self.client.bind(request, call.deadline - ANSWER_SECONDS)
                    break
                except BinderError as failure:
                    is_certain = is_certain and not failure.sent_at
                    backoff = backoff or Backoff(0.02, 0.5)
                    pause, now = backoff.next(), asyncio.get_running_loop().time()
                    again = failure.code is grpc.StatusCode.UNAVAILABLE
                    if not again or now + pause >= call.deadline:
                        raise
                    # Plugins are left to a binder: they may wait for others, or act after the bind.
                    if policy is None and await self.unknown.shown(call, failure.sent_at):
                        break
                    await asyncio.sleep(pause)
            self._refusal = ""
            self._state.confirm(call.uid)
            self.unknown.end(call)
            if call.uid in self._cycle_states.by_uid:
                self._cycle_states.end(call.uid)
        except CallFailedError as failure:
            error = str(failure)
            self._state.forget(call.uid)
            self.unknown.end(call)
            raise
        except BinderError as failure:
            error, plugins = self._failed(call, failure, is_certain=is_certain), failure.plugins
            if failure.reason == STALE_EPOCH:
                self._term.end(epoch, str(failure))
                raise StaleTermError(error) from failure
            raise CallFailedError(error) from failure
        except BaseException:
            self._state.confirm(call.uid)  # unknown outcome: assumed, but not for ever
            raise
        finally:
            if self._calls.get(call.uid) is call:
                del self._calls[call.uid]
            records = _records(plugins) if plugins else []
            if records:
                self._ran(records)
            if decision is not None:
                decision.bind = BindRecord(
                    node=call.node,
                    seconds=time.perf_counter() - start,
                    error=error,
                    plugins=records,
                )

    async def _bind_policy(self, call: BindCall) -> types_pb2.Policy | None:
        try:
            async with asyncio.timeout_at(call.deadline - ANSWER_SECONDS):
                return await self._policy.for_bind()
        except TimeoutError as error:
            missing = "Moorage has no policy yet; see /readyz of its gateway"
            unreached = "binder service is not available"
            raise CallFailedError(missing if self._policy.problem else unreached) from error

    def _request(
        self,
        call: BindCall,
        decision: Decision | None,
        policy: types_pb2.Policy | None,
        epoch: int,
    ) -> pb.BinderServiceSessionRequest:
        request = pb.BinderServiceSessionRequest()
        bind = request.bind
        bind.namespace, bind.name, bind.uid = call.namespace, call.name, call.uid
        bind.node, bind.epoch, bind.holder = call.node, epoch, self._holder
        bind.traceparent = call.traceparent
        if policy is not None:
            bind.policy.CopyFrom(policy)
            request.reports_waits = True
            bind.cycle_state.update(self._cycle_states.at(call.uid, call.node))
            bind.generation = self._generation()
        if decision is not None and decision.score_error.startswith(UNSTARTED):
            bind.warning = decision.score_error
        if decision is not None and (policy is not None or self._decisions_are_read):
            why = summary(decision, call.node, self._arrays.totals_of(decision.id))
            bind.decision = msgspec.json.encode(why) if why else b""
        return request

    def _failed(self, call: BindCall, failure: BinderError, *, is_certain: bool) -> str:
        """Note a failure; it is not *certain* if a binder was lost that may still bind the pod."""
        if failure.reason == POLICY:
            self._refusal = str(failure).rpartition(CANNOT_USE)[2]
        if is_certain and failure.code in REFUSALS:
            self._state.forget(call.uid)
            self.unknown.end(call)
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


def _records(reports: Sequence[pb.BindPluginReport]) -> list[BindPluginRecord]:
    """Return what plugins did for a bind."""
    return [
        BindPluginRecord(
            plugin=report.plugin,
            point=report.point,
            result=report.result,
            seconds=from_duration(report.duration),
        )
        for report in reports
    ]
