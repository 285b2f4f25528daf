"""Asks the filter plugins about a pod's node again at the bind, unless their verdict still holds.

kube-scheduler names the chosen node at the bind. Other pods may have got the same node since the
decision: those of its own next cycles, of another scheduler, or of another gateway. Another
scheduler of the same profile may have had the pod filtered since, with another result. So a bind is
carried out unchecked only if the pod holds the node by a claim, or if the newest decision found the
node feasible and nothing has changed that this depends on. What is not asked is assumed at once, in
the same step of the event loop, and what is asked in the step in which the last answer is seen to
hold: of two binds that contradict each other, the second sees the first.
Called by `gateway.scheduling.scheduler` for each bind.
"""

import asyncio
import time
from collections import OrderedDict
from itertools import chain

from gateway.binding.binding import BindDispatcher
from gateway.cluster.cluster import Cluster
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_a_while
from gateway.cycle import ANSWER_SECONDS, BindCall, CallFailedError, Cycle, Judge, NodeSet
from gateway.cycle.answers import Codes
from gateway.cycle.cycle_states import CycleStates
from gateway.cycle.decision import BindCheckRecord, Cause, Decision
from gateway.cycle.nodes import Rows, index_of
from gateway.policy.dependencies import FilterDependencies
from gateway.policy.policy import PolicyHolder
from gateway.scheduling.metrics import BindCheckOutcome, CycleMetrics
from gateway.scheduling.queue import CycleQueue
from moorage.models import Pod, encode
from moorage.plugin.cycle_state import annotations_at
from moorage.plugin.values import Scope

NO_POLICY = "Moorage has no policy yet; see /readyz of its gateway"
STALE = "Moorage's view of the cluster is too old; see /readyz of its gateway"
TOO_LATE = "the node could not be checked again in time"
NO_NODE = "the node does not exist, or Moorage does not know it yet"
ELSEWHERE = "another bind of the pod, to another node, is under way"

JUDGED_LIMIT, JUDGED_BYTES = 512, 1 << 24
"""Pods whose verdicts wait for a bind, and about what they take; it may never come.

Two bytes a node; without them the plugins are asked.
"""


def changed_on(state: ClusterState, nodes: str | Rows, filters: FilterDependencies) -> int:
    """Return the generation in which something last changed that verdicts on nodes depend on.

    *nodes* is the name of one, or the rows of several.
    """
    row = state.rows.of.get(nodes) if isinstance(nodes, str) else 0
    if row is None:
        return state.generation
    if not filters.reads_placements:
        return state.manifests_changed
    if filters.scope >= Scope.CLUSTER:
        return state.generation
    touched = state.rows.touched
    if isinstance(nodes, str):
        newest = touched.item(row)
    else:
        newest = int(touched[nodes[nodes < len(touched)]].max(initial=0))
    return newest if filters.scope < Scope.MANIFESTS else max(newest, state.manifests_changed)


class BindCheck:
    """Checks the nodes of binds, in turns of the cycle queue.

    Attributes:
        judged: The newest verdicts of all filter plugins by the pod's uid: rows and codes, and the
            pod as the watch had shown it. Cycles put them in, and a bind takes those of its pod
            out.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        policy: PolicyHolder,
        judge: Judge,
        queue: CycleQueue,
        cycle_states: CycleStates,
        metrics: CycleMetrics,
        binding: BindDispatcher,
        unknown_pod_wait: float,
    ) -> None:
        """Check with the plugins that *judge* asks.

        Args:
            cluster: What verdicts depend on, and where pods that pass are assumed.
            policy: The plugins of each profile.
            judge: Asks filter plugins.
            queue: Gives checks their turns.
            cycle_states: Keeps what plugins keep for the bind, as they say it now.
            metrics: Counts them.
            binding: Knows pods that the watch has not shown yet, and reads them.
            unknown_pod_wait: Seconds that a bind of any other pod waits for the watch.
        """
        self.judged: OrderedDict[str, tuple[bytes, Codes, Pod | None]] = OrderedDict()
        self._cluster = cluster
        self._state = cluster.state
        self._policy = policy
        self._judge = judge
        self._queue = queue
        self._cycle_states = cycle_states
        self._metrics = metrics
        self._pod = binding.pods_ahead.pod
        self._binding = binding
        self._unknown_pod_wait = unknown_pod_wait

    async def run(
        self, call: BindCall, pod: Pod | None, decision: Decision | None, epoch: int
    ) -> Pod | None:
        """Return the pod if it may be bound in the term of *epoch*; if checked, it is assumed.

        Whoever calls this assumes it before anything else happens.

        Args:
            call: The bind.
            pod: The pod, if it is known already; None is returned if it is gone.
            decision: What was decided about it.
            epoch: That of the term.

        Raises:
            CallFailedError: There is no such node, a plugin rejects it, or cannot be asked.
        """
        if pod is None or self._policy.resolved is None:
            pod = await self._known(call)
        cause = self._cause(pod, call, decision, epoch)
        if cause is None:
            self._metrics.bind_checked["spared"].inc()
            return pod
        outcome: BindCheckOutcome = "failed"
        start, error = time.perf_counter(), ""
        try:
            error = await self._checked(pod, call)
            outcome = "rejected" if error else "passed"
        except TimeoutError as timeout:
            error = TOO_LATE
            raise CallFailedError(error) from timeout
        except CallFailedError as failure:
            error = str(failure)
            raise
        finally:
            self._metrics.bind_checked[outcome].inc()
            if decision is not None:
                seconds = time.perf_counter() - start
                decision.bind_check = BindCheckRecord(
                    node=call.node, cause=cause, seconds=seconds, error=error
                )
        if error:
            self._state.release(call.uid)
            raise CallFailedError(error)
        return pod

    async def _known(self, call: BindCall) -> Pod | None:
        """Return the pod, once it is known; None if it is gone. Without filters, nobody waits."""
        if self._policy.resolved is None:
            try:
                async with asyncio.timeout_at(call.deadline - ANSWER_SECONDS):
                    await self._policy.until_filters_are_known()
            except TimeoutError as error:
                raise CallFailedError(NO_POLICY) from error
        pod = self._pod(call.uid)
        if not self._policy.dependencies.filters:
            return pod
        if pod is None:
            await wait_a_while(
                self._state,
                lambda: self._pod(call.uid) is not None,
                self._unknown_pod_wait,
                call.deadline - ANSWER_SECONDS,
            )
            pod = self._pod(call.uid)
        if pod is None:
            pod = await self._binding.unknown.read(
                call
            )  # if it is gone, the binder has the better answer
        return pod

    def _cause(
        self, pod: Pod | None, call: BindCall, decision: Decision | None, epoch: int
    ) -> Cause | None:
        """Return why the pod's node has to be checked; None if it need not be."""
        rows, codes, judged = self.judged.pop(call.uid, (b"", (), None))
        if pod is not None and pod.spec.node_name:
            return None
        row = self._state.rows.of.get(call.node)
        if row is None:
            return "unknown node"
        filters = self._policy.dependencies.filters.get(pod.spec.scheduler_name) if pod else None
        if pod is None or filters is None:
            return None
        if decision is None or decision.filter is None:
            return "no decision"
        if decision.epoch != epoch:
            return "earlier term"
        if decision.policy_revision != self._policy.revision:
            return "other policy"
        if decision.claim is not None and not decision.claim.outdated:
            holds = self._state.places.get(call.uid) == call.node
            # Every cycle and check since has counted the pod on its node.
            return None if holds else "claim lost"
        index = index_of(rows, row)
        if index is None or codes[index]:
            return "not feasible"
        if judged is not None and (judged.metadata, judged.spec) != (pod.metadata, pod.spec):
            return "pod changed"
        if self._state.generation <= decision.generation:
            return None
        outdated = changed_on(self._state, call.node, filters) > decision.generation
        return "node changed" if outdated else None

    def _changed_since(self, generation: int, pod: Pod, node: str) -> bool:
        filters = self._policy.dependencies.filters.get(pod.spec.scheduler_name)
        return filters is not None and changed_on(self._state, node, filters) > generation

    async def _checked(self, pod: Pod | None, call: BindCall) -> str:
        """Assume the pod on its node if the plugins let it pass; else return why not."""
        if self._cluster.is_stale():
            self._metrics.stale()
            raise CallFailedError(STALE)
        is_known = lambda: call.node in self._state.rows.of  # noqa: E731
        end = call.deadline - ANSWER_SECONDS
        if not await wait_a_while(self._state, is_known, self._unknown_pod_wait, end):
            return NO_NODE
        if pod is None or pod.spec.scheduler_name not in self._policy.dependencies.filters:
            return ""
        cycle = Cycle(
            pod=pod,
            pod_json=encode(pod),
            nodes=NodeSet([call.node]),
            deadline=call.deadline,
            traceparent=call.traceparent,
        )
        async with asyncio.timeout_at(call.deadline - ANSWER_SECONDS), self._queue.turn():
            verdicts = await self._judge(cycle)
            while verdicts.record.feasible:
                # Binds that need no check do not wait for this turn.
                if self._state.is_assumed(pod.uid) and self._state.places.get(pod.uid) != call.node:
                    return ELSEWHERE
                if not self._changed_since(verdicts.generation, pod, call.node):
                    self._cycle_states.add(pod.uid, verdicts.kept)
                    self._state.release(pod.uid)  # what its claim had is outdated
                    annotations = annotations_at(verdicts.kept, call.node)
                    self._state.assume(pod, call.node, annotations)
                    return ""
                verdicts = await self._judge(cycle)
        reason = next(chain(*(each.values() for each in verdicts.rejected(cycle.nodes))), "")
        plugin = next((each.plugin for each in verdicts.record.plugins if each.rejected), "Moorage")
        return f"checked again at the bind, {plugin} rejects: {reason}"
