"""Makes room for a pod that fits nowhere: chooses pods of lower priority that have to go.

As DefaultPreemption does, extenders' filters are not consulted, only their preempt verb.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from sandbox.scheduler.cache import Cache, KnownPod, NodeInfo
from sandbox.scheduler.cycle.attempt import Attempt, Rejection, summary
from sandbox.scheduler.cycle.cycle import rejection_of
from sandbox.scheduler.cycle.in_tree import InTreePlugins
from sandbox.scheduler.extenders.client import Extender, ExtenderError, preempt_answer, preempt_body

_log = structlog.get_logger()

NAME = "DefaultPreemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = Rejection(NAME, ("No preemption victims found for incoming pod",), unresolvable=True)
_MIN_CANDIDATES = 100
_MIN_PERCENTAGE = 10

Victims = list[KnownPod]
"""Pods of one node, the most important first."""


class PreemptionError(Exception):
    """Nobody is preempted; the message is added to what users read about the pod.

    Attributes:
        hopeless: Whether no node would fit the pod even without its less important pods.
    """

    def __init__(self, message: str, *, hopeless: bool = False) -> None:
        super().__init__(message)
        self.hopeless = hopeless


@dataclass(frozen=True, slots=True)
class Plan:
    """Which pods leave which node."""

    node: str
    victims: Victims

    def __str__(self) -> str:
        place = f"found a potential placement for pod on node {self.node}"
        return f"{place}, preempting {len(self.victims)} victims"


class Preemption:
    """Plans preemptions.

    Args:
        cache: The state of the cluster.
        extenders: In the order in which they are called.
        rng: Chooses where the search starts and breaks ties.
    """

    def __init__(self, cache: Cache, extenders: Sequence[Extender], rng: random.Random) -> None:
        self._cache = cache
        self._extenders = extenders
        self._rng = rng

    async def plan(self, attempt: Attempt, plugins: InTreePlugins) -> Plan:
        """Return who has to go from where.

        Raises:
            PreemptionError: Nobody can or may be preempted for this pod.
            PluginFailedError: An in-tree plugin cannot evaluate the pod.
        """
        pod = attempt.pod
        self._require_eligible(pod, attempt.rejections)
        candidates = await self._candidates(pod, plugins, attempt.rejections)
        for extender in self._extenders:
            if not extender.config.preempt_verb or not extender.is_interested(pod.pod):
                continue
            candidates = await self._consult(extender, pod, candidates)
            if not candidates:
                break
        if not candidates:
            raise PreemptionError("no candidate node for preemption")
        return self._pick(candidates)

    def _require_eligible(self, pod: KnownPod, rejections: Mapping[str, Rejection]) -> None:
        if pod.pod.spec.preemption_policy == "Never":
            raise PreemptionError("not eligible due to preemptionPolicy=Never.")
        node = self._cache.nomination(pod)
        rejection = rejections.get(node)
        if node not in self._cache.nodes or (rejection and rejection.unresolvable):
            return
        if any(victim.pod.metadata.deletion_timestamp for victim in self._lower(pod, node)):
            raise PreemptionError("not eligible due to a terminating pod on the nominated node.")

    async def _candidates(
        self, pod: KnownPod, plugins: InTreePlugins, rejections: Mapping[str, Rejection]
    ) -> dict[str, Victims]:
        curable = [
            node
            for name, node in self._cache.nodes.items()
            if (rejection := rejections.get(name)) and not rejection.unresolvable
        ]
        start = self._rng.randrange(len(curable)) if curable else 0
        enough = max(len(curable) * _MIN_PERCENTAGE // 100, _MIN_CANDIDATES)
        candidates: dict[str, Victims] = {}
        failures: dict[str, Rejection] = {}
        problems: list[str] = []
        for node in curable[start:] + curable[:start]:
            found = await self._dry_run(pod, plugins, node)
            if isinstance(found, Rejection):
                failures[node.name] = found
            elif found:
                candidates[node.name] = found
            else:
                problems.append(_no_victims(node.name))
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
    ) -> Victims | Rejection:
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

    def _lower(self, pod: KnownPod, node: str) -> Victims:
        priority = pod.pod.spec.priority
        pods = self._cache.pods_on(node).values()
        return [other for other in pods if other.pod.spec.priority < priority]

    async def _consult(
        self, extender: Extender, pod: KnownPod, candidates: dict[str, Victims]
    ) -> dict[str, Victims]:
        try:
            answer = await self._ask(extender, pod, candidates)
        except ExtenderError as error:
            if not extender.config.ignorable:
                raise PreemptionError(str(error)) from error
            _log.info("extender skipped", extender=extender.name, error=str(error))
            return candidates
        for node in [node for node, victims in answer.items() if not victims]:
            if not extender.config.ignorable:
                raise PreemptionError(_no_victims(node))
            del answer[node]
        return answer

    async def _ask(
        self, extender: Extender, pod: KnownPod, candidates: dict[str, Victims]
    ) -> dict[str, Victims]:
        victims = {node: [(v.uid, v.wire) for v in pods] for node, pods in candidates.items()}
        body = preempt_body(pod.wire, victims, extender.config.node_cache_capable)
        answer = preempt_answer(await extender.call(extender.config.preempt_verb, body))
        return {node: self._known(extender, node, uids) for node, uids in answer.items()}

    def _known(self, extender: Extender, node: str, uids: list[str]) -> Victims:
        if node not in self._cache.nodes:
            raise ExtenderError(f'nodeinfo not found for node name "{node}"')
        pods = self._cache.pods_on(node)
        for uid in uids:
            if uid not in pods:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: "
                    f"{node}, but the pod is not found on that node"
                )
        return [pods[uid] for uid in uids]

    def _pick(self, candidates: dict[str, Victims]) -> Plan:
        names = list(candidates)
        for score in _PREFERENCES:
            best = min(score(candidates[name]) for name in names)
            names = [name for name in names if score(candidates[name]) == best]
        node = self._rng.choice(sorted(_latest_start(names, candidates)))
        return Plan(node, candidates[node])


# Disruption budgets come first in kube-scheduler; there are none here.
_PREFERENCES: tuple[Callable[[Victims], int], ...] = (
    lambda victims: victims[0].pod.spec.priority,
    lambda victims: sum(victim.pod.spec.priority + 2**31 for victim in victims),
    len,
)


def _latest_start(names: list[str], candidates: dict[str, Victims]) -> list[str]:
    starts = {name: _earliest_start(candidates[name]) for name in names}
    latest = max(starts.values())
    return [name for name in names if starts[name] == latest]


def _earliest_start(victims: Victims) -> str:
    highest = victims[0].pod.spec.priority
    starts = [v.start_time for v in victims if v.pod.spec.priority == highest]
    return min(start or "~" for start in starts)  # not started counts as now, later than any date


def _no_victims(node: str) -> str:
    return f'expected at least one victim pod on node "{node}"'


def _importance(pod: KnownPod) -> tuple[int, str]:
    return -pod.pod.spec.priority, pod.start_time or "~"
