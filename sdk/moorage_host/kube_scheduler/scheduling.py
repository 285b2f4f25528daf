"""One kube-scheduler: its queue, one cycle at a time, and preemption, wherever the cluster is.

What its decisions lead to is up to the `Effects`: on a live API server, or in a copy of a cluster.
"""

import random
from collections.abc import Callable
from typing import Protocol

from moorage.errors import PluginFailedError
from moorage_host.kube_scheduler.attempt import NoNodesError, Reason, SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.configuration.document import KubeSchedulerConfiguration
from moorage_host.kube_scheduler.cycle import SchedulingCycle
from moorage_host.kube_scheduler.extender import ExtenderError
from moorage_host.kube_scheduler.extenders import Extending
from moorage_host.kube_scheduler.in_tree import InTreePlugins
from moorage_host.kube_scheduler.preemption import NAME, Preemption, PreemptionError, PreemptionPlan
from moorage_host.kube_scheduler.queue import QueuedPod, SchedulingQueue


class Effects(Protocol):
    """What decisions lead to."""

    async def place(self, queued: QueuedPod, attempt: SchedulingAttempt, node: str) -> None:
        """Have a pod, which has left the queue, on its node."""

    async def evict(self, victim: KnownPod, preemptor: KnownPod, node: str) -> None:
        """Have a pod leave its node; raises PreemptionError."""

    async def release(self, pod: KnownPod) -> None:
        """Report that no node is held for a pod any more; raises PreemptionError."""

    async def failed(self, queued: QueuedPod, attempt: SchedulingAttempt) -> None:
        """Report why an attempt did not place its pod."""


class Scheduling:
    """Decides about pods.

    Args:
        configuration: What kube-scheduler is configured with.
        cache: The state of the cluster.
        extenders: The extenders, over HTTP or in this process.
        effects: What decisions lead to.
        rng: Breaks ties.
        clock: Returns the time for the queue, in seconds.
    """

    def __init__(
        self,
        configuration: KubeSchedulerConfiguration,
        cache: SchedulerCache,
        extenders: Extending,
        effects: Effects,
        *,
        rng: random.Random,
        clock: Callable[[], float],
    ) -> None:
        self._cache, self._effects = cache, effects
        self._cycle = SchedulingCycle(configuration, cache, extenders, rng)
        self._preemption = Preemption(cache, extenders, rng)
        self.profiles = {
            profile.scheduler_name: (
                profile,
                InTreePlugins(profile, configuration.ignored_resources),
            )
            for profile in configuration.profiles
        }
        self.queue = SchedulingQueue(
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            clock=clock,
        )

    async def attempt(self, queued: QueuedPod) -> None:
        """Try once to place a pod that the queue has handed out."""
        profile, plugins = self.profiles[queued.pod.pod.spec.scheduler_name]
        attempt = SchedulingAttempt(pod=queued.pod, nodes=len(self._cache.nodes))
        try:
            node = await self._cycle.choose(attempt, profile, plugins)
        except NoNodesError as error:
            await self.break_off(queued, error, "Unschedulable")
        except (ExtenderError, PluginFailedError) as error:
            await self.break_off(queued, error, "SchedulerError")
        else:
            if node is not None:
                self.queue.done(queued)
                await self._effects.place(queued, attempt, node)
                return
            attempt.hold = ""
            if NAME in profile.post_filters:
                await self._preempt(attempt, plugins)
            await self._fail(queued, attempt)

    async def break_off(self, queued: QueuedPod, error: Exception, reason: Reason) -> None:
        """End an attempt, or a bind, that an error broke off; it is tried again later."""
        attempt = SchedulingAttempt(pod=queued.pod, nodes=len(self._cache.nodes))
        attempt.error, attempt.reason, attempt.hold = str(error), reason, ""
        await self._fail(queued, attempt)

    async def _preempt(self, attempt: SchedulingAttempt, plugins: InTreePlugins) -> None:
        """Make room for a pod that fits nowhere, and note in *attempt* how that went."""
        attempt.hold = None
        try:
            plan = await self._preemption.plan(attempt, plugins)
            await self._evict(attempt.pod, plan)
        except (PluginFailedError, PreemptionError) as error:
            attempt.aftermath = f"preemption: {error}"
            if isinstance(error, PreemptionError) and error.hopeless:
                attempt.hold = ""
        else:
            attempt.aftermath = f"preemption: {plan}"
            attempt.hold = plan.node

    async def _evict(self, preemptor: KnownPod, plan: PreemptionPlan) -> None:
        """Have a plan's victims leave, and release the room held for less important pods."""
        for victim in plan.victims:
            if not victim.pod.metadata.deletion_timestamp:
                await self._effects.evict(victim, preemptor, plan.node)
        for other in self._cache.held(plan.node):
            if other.pod.spec.priority < preemptor.pod.spec.priority:
                self._cache.nominate(other, "")
                await self._effects.release(other)

    async def _fail(self, queued: QueuedPod, attempt: SchedulingAttempt) -> None:
        """End an attempt that did not place its pod."""
        pod = self._cache.pods.get(queued.pod.uid)
        if pod is None or pod.pod.spec.node_name:
            # Deleted, or bound after all although the answer got lost.
            self.queue.done(queued)
        else:
            queued.pod = pod
            self.queue.retry(queued, frozenset(attempt.plugins))
            if attempt.hold is not None:
                self._cache.nominate(pod, attempt.hold)
        await self._effects.failed(queued, attempt)
