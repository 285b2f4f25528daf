"""Makes room for a pod that fits nowhere: chooses pods of lower priority that have to go.

As DefaultPreemption does, extenders' filters are not consulted, only their preempt verb.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler.attempt import SchedulingAttempt, summary
from moorage_host.kube_scheduler.cache import KnownPod, NodeInfo, SchedulerCache
from moorage_host.kube_scheduler.cycle import rejection_of
from moorage_host.kube_scheduler.extender import ExtenderError
from moorage_host.kube_scheduler.extenders import Candidates, Extending, no_victims
from moorage_host.kube_scheduler.in_tree import InTreePlugins

NAME = "DefaultPreemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = PluginRejection(
    NAME, "No preemption victims found for incoming pod", unresolvable=True
)
_MIN_CANDIDATES = 100
_MIN_PERCENTAGE = 10


class PreemptionError(Exception):
    """Nobody is preempted; the message is added to what users read about the pod.

    Attributes:
        hopeless: Whether no node would fit the pod even without its less important pods.
    """

    def __init__(self, message: str, *, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """Which pods leave which node."""

    node: str
    victims: Sequence[KnownPod]

    def __str__(self) -> str:
        place = f"found a potential placement for pod on node {self.node}"
        return f"{place}, preempting {len(self.victims)} victims"


class Preemption:
    """Plans preemptions.

    Args:
        cache: The state of the cluster.
        extenders: Choose among the candidates.
        rng: Chooses where the search starts and breaks ties.
    """

    def __init__(self, cache: SchedulerCache, extenders: Extending, rng: random.Random) -> None:
        self._cache = cache
        self._extenders = extenders
        self._rng = rng

    async def plan(self, attempt: SchedulingAttempt, plugins: InTreePlugins) -> PreemptionPlan:
        """Return who has to go from where.

        Raises:
            PreemptionError: Nobody can or may be preempted for this pod.
            PluginFailedError: An in-tree plugin cannot evaluate the pod.
        """
        pod = attempt.pod
        self._require_eligible(pod, attempt.rejections)
        candidates = await self._candidates(pod, plugins, attempt.rejections)
        try:
            candidates = await self._extenders.preempt(pod, candidates)
        except ExtenderError as error:
            raise PreemptionError(str(error)) from error
        if not candidates:
            raise PreemptionError("no candidate node for preemption")
        return self._pick(candidates)

    def _require_eligible(self, pod: KnownPod, rejections: Mapping[str, PluginRejection]) -> None:
        if pod.pod.spec.preemption_policy == "Never":
            raise PreemptionError("not eligible due to preemptionPolicy=Never.")
        node = self._cache.nomination(pod)
        rejection = rejections.get(node)
        if node not in self._cache.nodes or (rejection and rejection.unresolvable):
            return
        if any(victim.pod.metadata.deletion_timestamp for victim in self._lower(pod, node)):
            raise PreemptionError("not eligible due to a terminating pod on the nominated node.")

    async def _candidates(
        self, pod: KnownPod, plugins: InTreePlugins, rejections: Mapping[str, PluginRejection]
    ) -> Candidates:
        curable = [
            node
            for name, node in self._cache.nodes.items()
            if (rejection := rejections.get(name)) and not rejection.unresolvable
        ]
        start = self._rng.randrange(len(curable)) if curable else 0
        enough = max(len(curable) * _MIN_PERCENTAGE // 100, _MIN_CANDIDATES)
        candidates: dict[str, Sequence[KnownPod]] = {}
        failures: dict[str, PluginRejection] = {}
        problems: list[str] = []
        for node in curable[start:] + curable[:start]:
            found = await self._dry_run(pod, plugins, node)
            if isinstance(found, PluginRejection):
                failures[node.name] = found
            elif found:
                candidates[node.name] = found
            else:
                problems.append(no_victims(node.name))
            if len(candidates) == enough:
                break
        if not candidates:
            if problems:
                text = ", ".join(sorted(problems))
                raise PreemptionError(text if len(problems) == 1 else f"[{text}]")
            message = summary(len(self._cache.nodes), failures, NOT_HELPFUL)
            raise PreemptionError(message, hopeless=True)
        return candidates

    async def _dry_run(
        self, pod: KnownPod, plugins: InTreePlugins, node: NodeInfo
    ) -> Sequence[KnownPod] | PluginRejection:
        lower = sorted(self._lower(pod, node.name), key=_importance)
        if not lower:
            return NO_VICTIMS
        with self._cache.trial(node) as trial:
            for other in lower:
                trial.remove(other)
            if rejection := await rejection_of(self._cache, pod, plugins, node):
                return rejection
            victims = []
            for other in lower:  # give back whoever still fits, the most important first
                trial.add(other)
                if await rejection_of(self._cache, pod, plugins, node):
                    trial.remove(other)
                    victims.append(other)
            return victims

    def _lower(self, pod: KnownPod, node: str) -> Sequence[KnownPod]:
        priority = pod.pod.spec.priority
        pods = self._cache.pods_on(node).values()
        return [other for other in pods if other.pod.spec.priority < priority]

    def _pick(self, candidates: Candidates) -> PreemptionPlan:
        names = list(candidates)
        for score in _PREFERENCES:
            best = min(score(candidates[name]) for name in names)
            names = [name for name in names if score(candidates[name]) == best]
        node = self._rng.choice(sorted(_latest_start(names, candidates)))
        return PreemptionPlan(node, candidates[node])


# Disruption budgets come first in kube-scheduler; there are none here.
_PREFERENCES: tuple[Callable[[Sequence[KnownPod]], int], ...] = (
    lambda victims: victims[0].pod.spec.priority,
    lambda victims: sum(victim.pod.spec.priority + 2**31 for victim in victims),
    len,
)


def _latest_start(names: list[str], candidates: Candidates) -> list[str]:
    starts = {name: _earliest_start(candidates[name]) for name in names}
    latest = max(starts.values())
    return [name for name in names if starts[name] == latest]


def _earliest_start(victims: Sequence[KnownPod]) -> str:
    highest = victims[0].pod.spec.priority
    starts = [v.start_time for v in victims if v.pod.spec.priority == highest]
    return min(start or "~" for start in starts)  # not started counts as now, later than any date


def _importance(pod: KnownPod) -> tuple[int, str]:
    return -pod.pod.spec.priority, pod.start_time or "~"
