"""The extenders of a scheduler: asked over HTTP, or whatever else stands in their place.

They filter one after another, score all at once, and are asked about the victims of a preemption.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler.attempt import EXTENDER, SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.extender import (
    Extender,
    ExtenderError,
    FilterAnswer,
    filter_answer,
    filter_body,
    preempt_answer,
    preempt_body,
    score_answer,
)
from moorage_host.kube_scheduler.gojson import node_json

_log = structlog.get_logger()

_SCALE = 10  # 100 (the largest node score) / 10 (the largest extender score)

Offered = Mapping[str, bytes]
"""Nodes by name, with the JSON that extenders without a cache get of them."""


Candidates = Mapping[str, Sequence[KnownPod]]
"""The pods that would have to leave each node, the most important first."""


class Extending(Protocol):
    """The extenders of a scheduling cycle, wherever they run."""

    names_only: bool

    async def filter(self, attempt: SchedulingAttempt, nodes: Offered) -> Offered:
        """Return the nodes that all extenders accept; raises ExtenderError."""

    async def scores(self, pod: KnownPod, nodes: Offered) -> dict[str, int]:
        """Return the weighted scores that the extenders give together, by node."""

    async def preempt(self, pod: KnownPod, candidates: Candidates) -> Candidates:
        """Return the nodes where the pod may run without the victims; raises ExtenderError."""


class Extenders:
    """Calls extenders in the order in which kube-scheduler does.

    Args:
        extenders: In that order.
        cache: The state of the cluster.
    """

    def __init__(self, extenders: Sequence[Extender], cache: SchedulerCache) -> None:
        self._extenders = extenders
        self._cache = cache
        self.names_only = all(extender.config.node_cache_capable for extender in extenders)

    async def filter(self, attempt: SchedulingAttempt, nodes: Offered) -> Offered:
        """Return the nodes that all extenders accept.

        Raises:
            ExtenderError: One failed that is not ignorable.
        """
        attempt.offered = attempt.accepted = 0
        for extender in self._extenders:
            if not nodes:
                break
            if not extender.config.filter_verb or not extender.is_interested(attempt.pod.pod):
                continue
            attempt.offered = attempt.offered or len(nodes)
            try:
                nodes = await _filtered(extender, attempt, nodes)
            except ExtenderError as error:
                if not extender.config.ignorable:
                    raise
                _log.info("extender skipped", extender=extender.name, error=str(error))
            attempt.accepted = len(nodes)
        return nodes

    async def scores(self, pod: KnownPod, nodes: Offered) -> dict[str, int]:
        """Return the weighted scores that the extenders give together, by node."""
        interested = [e for e in self._extenders if e.is_interested(pod.pod)]
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(_scores(e, pod, nodes)) for e in interested]
        totals: dict[str, int] = {}
        for host, score in (score for call in calls for score in call.result()):
            if host in nodes:
                totals[host] = _wrapped(totals.get(host, 0) + score)
        return totals

    async def preempt(self, pod: KnownPod, candidates: Candidates) -> Candidates:
        """Return the nodes where the pod may run without the victims, as extenders choose them.

        Raises:
            ExtenderError: One failed that is not ignorable.
        """
        for extender in self._extenders:
            if not candidates:
                break
            if not extender.config.preempt_verb or not extender.is_interested(pod.pod):
                continue
            try:
                answer = await self._candidates(extender, pod, candidates)
            except ExtenderError as error:
                if not extender.config.ignorable:
                    raise
                _log.info("extender skipped", extender=extender.name, error=str(error))
                continue
            for node in [node for node, victims in answer.items() if not victims]:
                if not extender.config.ignorable:
                    raise ExtenderError(no_victims(node))
                del answer[node]
            candidates = answer
        return candidates

    async def _candidates(
        self, extender: Extender, pod: KnownPod, candidates: Candidates
    ) -> dict[str, list[KnownPod]]:
        victims = {node: [(v.uid, v.wire) for v in pods] for node, pods in candidates.items()}
        body = preempt_body(pod.wire, victims, extender.config.node_cache_capable)
        answer = preempt_answer(await extender.call(extender.config.preempt_verb, body))
        return {node: self._known(extender, node, uids) for node, uids in answer.items()}

    def _known(self, extender: Extender, node: str, uids: list[str]) -> list[KnownPod]:
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


async def _filtered(extender: Extender, attempt: SchedulingAttempt, nodes: Offered) -> Offered:
    names_only = extender.config.node_cache_capable
    body = filter_body(attempt.pod.wire, nodes, names_only)
    answer = filter_answer(await extender.call(extender.config.filter_verb, body))
    if answer.error:
        raise ExtenderError(answer.error)
    survivors = _survivors(extender.name, answer, nodes, names_only)
    rejections = attempt.rejections
    for node, reason in answer.failed.items():
        rejections[node] = PluginRejection(EXTENDER, reason)
    for node, reason in answer.unresolvable.items():
        rejections[node] = PluginRejection(EXTENDER, reason, unresolvable=True)
    return survivors


async def _scores(extender: Extender, pod: KnownPod, nodes: Offered) -> Iterable[tuple[str, int]]:
    config = extender.config
    if not config.prioritize_verb:
        return [(node, 0) for node in nodes]
    body = filter_body(pod.wire, nodes, config.node_cache_capable)
    try:
        scores = score_answer(await extender.call(config.prioritize_verb, body))
    except ExtenderError as error:
        # kube-scheduler logs this only at verbosity 5.
        _log.debug("no scores from extender", extender=extender.name, error=str(error))
        return []
    return [(host, score * config.weight * _SCALE) for host, score in scores]


def _survivors(url: str, answer: FilterAnswer, nodes: Offered, names_only: bool) -> Offered:
    if names_only and answer.names is not None:
        for node in answer.names:
            if node not in nodes:
                raise ExtenderError(
                    f'extender "{url}" claims a filtered node "{node}" '
                    "which is not found in the input node list"
                )
        return {node: nodes[node] for node in answer.names}
    if answer.nodes is not None:
        return {_name(document): node_json(document) for document in answer.nodes}
    return {}


def no_victims(node: str) -> str:
    """Return what is wrong with a candidate from which nobody has to go."""
    return f'expected at least one victim pod on node "{node}"'


def _wrapped(score: int) -> int:
    return (score + 2**63) % 2**64 - 2**63  # int64 arithmetic, as in Go


def _name(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name", ""))
