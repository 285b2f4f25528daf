"""Pods whose nodes were all rejected: which of them wait, and when they are to be tried again.

kube-scheduler tries a rejected pod again when it sees the cluster change, and otherwise after five
minutes. What it does not see, the gateway brings to it, by a write to the pod's status:

- a plugin asks for it, since something outside of the cluster has changed;
- the policy has changed;
- what the verdicts depend on has changed after them. kube-scheduler may have seen that before the
  gateway did, and so before the attempt; and it does not watch all that plugins read.

The last has to wait: mostly kube-scheduler sees the change too, and tries the pod by itself. And
it has a bound: after each such write a pod waits twice as long for the next one.

What a gateway before this one rejected is not known: pods that have no node when this one begins to
decide, and are not tried by themselves, are tried again once.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from prometheus_client import CollectorRegistry, Counter

from gateway.binding.client import BinderClient, BinderError
from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle
from gateway.cycle.nodes import rows_of
from gateway.leadership.term import Term
from gateway.policy.dependencies import FilterDependencies
from gateway.policy.policy import PolicyHolder
from gateway.scheduling.bind_check import changed_on

PODS_PER_CALL = 500

BACKOFF_SECONDS = 10.0
"""The longest wait of kube-scheduler itself; the first is 1 s, and each next one the double."""

FIRST_PAUSE, LONGEST_PAUSE = 4.0, 60.0
"""Seconds after which a pod may be woken again because the cluster has changed."""

GRACE_SECONDS = 2.0
"""In which kube-scheduler may try a pod by itself, once its backoff is over."""

MOST_ASKED = 1000
"""Requests of plugins that are kept in mind, for the cycles that run meanwhile."""

FAILURE_PAUSE = 10.0
"""Seconds without calls after one that failed."""

CLUSTER_CHANGED = "the cluster has changed since it was rejected"
POLICY_CHANGED = "the policy has changed since it was rejected"

_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class RejectedPod:
    """A pod whose latest attempt found no node.

    Attributes:
        plugins: Those that rejected some.
        rows: A bitmap of the rows of the nodes that the verdicts are about.
        has_unknown: Whether kube-scheduler named nodes that the gateway did not know.
        judged: The verdicts are of this generation of the state; 0 if a gateway before had them.
        generation: The same, or when the pod was woken since.
        rules: The filter plugins of its profile, as they were.
        due: From when on it may be woken because the cluster has changed, on the clock.
        pause: How long it waits for the next time then, in seconds.
        outdated_since: When it was found that the cluster has changed, on the clock.
        retry_request: Which plugin wants it to be tried again, and why; None if it need not be.
    """

    namespace: str
    name: str
    uid: str
    profile: str
    plugins: tuple[str, ...]
    rows: bytes
    has_unknown: bool
    judged: int
    generation: int
    rules: object
    due: float
    pause: float = FIRST_PAUSE
    outdated_since: float = math.inf
    retry_request: tuple[str, str] | None = None


@dataclass(slots=True)
class RejectedPods:
    """The pods whose latest attempt found no node, the newest ones.

    Attributes:
        state: The cluster.
        policy: The plugins of each profile.
        limit: How many are kept.
        clock: A monotonic clock in seconds.
        changed: Set when there may be something to do at once.
        pods: The pods by UID.
    """

    state: ClusterState
    policy: PolicyHolder
    limit: int = 1000
    clock: Callable[[], float] = time.perf_counter
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    pods: OrderedDict[str, RejectedPod] = field(default_factory=OrderedDict)
    _asked: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    _has_begun: bool = False

    def note(self, cycle: Cycle) -> None:
        """Take over how the filter phase of a cycle ended."""
        decision = cycle.decision
        before, record = self.pods.pop(cycle.uid, None), decision.filter
        if record is None or record.feasible:
            return
        if before is not None and not before.judged:
            before = None
        now, backoff = self.clock(), min(2.0 ** (decision.attempt - 1), BACKOFF_SECONDS)
        pod = RejectedPod(
            namespace=decision.namespace,
            name=decision.pod,
            uid=decision.uid,
            profile=decision.profile,
            plugins=tuple(plugin.plugin for plugin in record.plugins if plugin.rejected),
            rows=cycle.verdicts.bitmap if cycle.verdicts is not None else b"",
            has_unknown=bool(record.unknown_nodes),
            judged=decision.generation,
            generation=decision.generation,
            rules=self._rules().get(decision.profile),
            due=max(now + backoff, before.due if before else 0.0),
            pause=before.pause if before else FIRST_PAUSE,
        )
        for plugin in pod.plugins:
            for namespace in ("", pod.namespace):
                asked, reason = self._asked.get((plugin, namespace), (-1.0, ""))
                if asked >= cycle.start:  # the plugin may have judged it by what was before
                    self._want(pod, plugin, reason)
        self.pods[pod.uid] = pod
        if len(self.pods) > self.limit:
            self.pods.popitem(last=False)

    def ask(self, plugin: str, reason: str, namespace: str = "") -> None:
        """Note that a plugin asks for another attempt on the pods that it rejected.

        Only on those of *namespace* if there is one.
        """
        self._asked.pop((plugin, namespace), None)
        self._asked[plugin, namespace] = self.clock(), reason
        if len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        for pod in self.pods.values():
            if plugin in pod.plugins and namespace in ("", pod.namespace):
                self._want(pod, plugin, reason)

    def follow(self, policy: PolicyHolder) -> None:
        """Note that the policy has changed: pods are tried again whose plugins it concerns."""
        rules = self._rules()
        for pod in list(self.pods.values()):
            if pod.profile not in policy.profiles:
                del self.pods[pod.uid]  # nobody here waits for it
            elif rules.get(pod.profile) != pod.rules:
                pod.rules = rules.get(pod.profile)
                self._want(pod, _culprit(pod), POLICY_CHANGED)

    def take(self) -> Mapping[tuple[str, str], Sequence[RejectedPod]]:
        """Return which pods to try again, by the plugin that wants it and why, each once."""
        if not self._has_begun:
            self._has_begun = True
            self._begin()
        last_change = _LastChange(self.state)
        found: dict[tuple[str, str], list[RejectedPod]] = {}
        for pod in list(self.pods.values()):
            if not self._waits(pod):
                del self.pods[pod.uid]
                continue
            if pod.retry_request is None and not self._is_outdated(pod, last_change):
                continue
            retry_request, pod.retry_request = (
                pod.retry_request or (_culprit(pod), CLUSTER_CHANGED),
                None,
            )
            # The attempt to come is by this state, or a later one.
            pod.generation, pod.outdated_since = self.state.generation, math.inf
            found.setdefault(retry_request, []).append(pod)
        return found

    def _begin(self) -> None:
        rules, due = self._rules(), self.clock() + BACKOFF_SECONDS
        for uid in self.state.known_pods():
            pod = self.state.pods.get(uid)
            if pod is None or pod.spec.scheduling_gates:
                continue
            if uid in self.state.places or uid in self.pods:
                continue
            profile = pod.spec.scheduler_name
            if profile in self.policy.dependencies.filters and len(self.pods) < self.limit:
                self.pods[uid] = RejectedPod(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=uid,
                    profile=profile,
                    plugins=(),
                    rows=b"",
                    has_unknown=True,
                    judged=0,
                    generation=0,
                    rules=rules.get(profile),
                    due=due,
                    pause=math.inf,
                )

    def is_outdated(self, uid: str) -> bool:
        """Return whether nodes that a waiting pod was judged on have changed since its verdict.

        Pods that come and go there alone are no such change: that would be so of most verdicts.
        """
        pod, state = self.pods.get(uid), self.state
        if pod is None or state.manifests_changed <= pod.judged:
            return False
        rows, touched = rows_of(pod.rows), state.rows.touched
        newest = int(touched[rows[rows < len(touched)]].max(initial=0))
        return newest > pod.judged

    def put_back(self, retry_request: tuple[str, str], pods: Sequence[RejectedPod]) -> None:
        """Note that pods could not be woken: they are to be tried again all the same."""
        for pod in pods:
            if self.pods.get(pod.uid) is pod:
                pod.retry_request = pod.retry_request or retry_request

    def _want(self, pod: RejectedPod, plugin: str, reason: str) -> None:
        pod.retry_request = plugin, reason
        self.changed.set()

    def _rules(self) -> Mapping[str, object]:
        resolved = self.policy.resolved
        profiles = resolved.policies["filter"].profiles if resolved else ()
        return {profile.name: profile for profile in profiles}

    def _is_outdated(self, pod: RejectedPod, last_change: "_LastChange") -> bool:
        """Whether kube-scheduler had the time to try a pod by what has changed, and did not."""
        filters = self.policy.dependencies.filters.get(pod.profile)
        if filters is None or last_change.on(pod, filters) <= pod.generation:
            return False
        now = self.clock()
        pod.outdated_since = min(pod.outdated_since, now)
        if now < max(pod.due, pod.outdated_since) + GRACE_SECONDS:
            return False
        pod.due, pod.pause = now + pod.pause, min(2 * pod.pause, LONGEST_PAUSE)
        return True

    def _waits(self, pod: RejectedPod) -> bool:
        known = self.state.pods.get(pod.uid)
        if known is None:  # the watch may be late
            return not self.state.has_ended(pod.uid)
        return not known.spec.node_name


class _LastChange:
    """When something changed that verdicts on the nodes of a pod depend on, at one time.

    Attributes:
        state: The cluster.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._known: dict[tuple[bytes, int, bool], int] = {}

    def on(self, pod: RejectedPod, filters: FilterDependencies) -> int:
        """Return the generation in which that was."""
        if pod.generation >= self.state.generation:
            return 0
        key = pod.rows, int(filters.scope), filters.reads_placements
        if (known := self._known.get(key)) is None:
            known = self._known[key] = changed_on(self.state, rows_of(pod.rows), filters)
        return max(known, self.state.manifests_changed) if pod.has_unknown else known


def _culprit(pod: RejectedPod) -> str:
    return pod.plugins[0] if pod.plugins else "Moorage"


def retried_pods(registry: CollectorRegistry) -> Counter:
    """Return the counter of pods that were to be tried again."""
    return Counter(
        "moorage_retried_pods",
        "Rejected pods to be tried again, as a plugin asked for it or cluster or policy changed: "
        "written or failed.",
        ["plugin", "outcome"],
        registry=registry,
    )


async def try_again(
    rejected: RejectedPods, client: BinderClient, term: Term, retried: Counter, interval: float
) -> None:
    """Have the binder wake pods, every *interval* seconds at most, until cancelled."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(interval):
                await rejected.changed.wait()
        if not term.is_active:
            await asyncio.sleep(interval)
            continue
        rejected.changed.clear()
        failed = False
        for retry_request, pods in rejected.take().items():
            for start in range(0, len(pods), PODS_PER_CALL):
                part = pods[start : start + PODS_PER_CALL]
                if not await _wake(client, retry_request, part, retried):
                    rejected.put_back(retry_request, part)
                    failed = True
        await asyncio.sleep(max(interval, FAILURE_PAUSE) if failed else interval)


async def _wake(
    client: BinderClient,
    retry_request: tuple[str, str],
    pods: Sequence[RejectedPod],
    retried: Counter,
) -> bool:
    """Have the binder write to pods; return whether it has."""
    plugin, reason = retry_request
    names = [(pod.namespace, pod.name, pod.uid) for pod in pods]
    try:
        written = await client.retry_pods(plugin, reason, names)
    except BinderError as error:
        retried.labels(plugin, "failed").inc(len(pods))
        _log.warning("Rejected pods are not tried again", plugin=plugin, error=str(error))
        return False
    retried.labels(plugin, "written").inc(written)
    _log.info("Rejected pods are tried again", plugin=plugin, reason=reason, pods=written)
    return True
