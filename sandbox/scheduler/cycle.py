"""One scheduling cycle: which nodes fit a pod, and which of them is best.

In-tree filters on a sample of the nodes, then the extenders' filters one after another, then their
scores all at once. Nothing here changes the cluster or the cache.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from moorage.models import Pod
from sandbox.scheduler.answers import AnswerError, FilterAnswer, filter_answer, score_answer
from sandbox.scheduler.cache import Cache, KnownPod, NodeInfo
from sandbox.scheduler.config import Configuration, Profile
from sandbox.scheduler.extender import Extender, ExtenderError, filter_body
from sandbox.scheduler.filters import Checks, Filters, named_nodes
from sandbox.scheduler.gojson import node_json
from sandbox.scheduler.verdicts import NoNodesError, Refusal, Unschedulable

_log = structlog.get_logger()

EXTENDER = "Extender"
_SCALE = 10  # 100 (the largest node score) / 10 (the largest extender score)
_MIN_SAMPLE = 100
_MIN_PERCENTAGE = 5

Nodes = Mapping[str, bytes]
"""Nodes by name, with the JSON that extenders without a cache get of them."""


@dataclass(slots=True)
class Diagnosis:
    """What is known so far of nodes that do not fit."""

    refusals: dict[str, Refusal] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)

    def refuse(self, node: str, plugin: str, no: Refusal) -> None:
        """Note one node's "no"."""
        self.refusals[node] = no
        self.plugins.add(plugin)


def sample_size(nodes: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; a percentage of 0 means that it adapts."""
    if nodes < _MIN_SAMPLE:
        return nodes
    percentage = percentage or max(_MIN_PERCENTAGE, 50 - nodes // 125)
    return max(_MIN_SAMPLE, nodes * percentage // 100)


class Cycle:
    """Chooses nodes for pods.

    Args:
        configuration: The scheduler's configuration.
        cache: The state of the cluster.
        extenders: In the order in which they are called.
        rng: Breaks ties.
    """

    def __init__(
        self,
        configuration: Configuration,
        cache: Cache,
        extenders: Sequence[Extender],
        rng: random.Random,
    ) -> None:
        self._configuration = configuration
        self._cache = cache
        self._extenders = extenders
        self._rng = rng
        self._start = 0

    async def choose(self, pod: KnownPod, profile: Profile, filters: Filters) -> str:
        """Return the best node's name.

        Raises:
            NoNodesError: The cluster is empty.
            Unschedulable: No node fits.
            ExtenderError: An extender failed that is not ignorable.
        """
        if not self._cache.nodes:
            raise NoNodesError
        diagnosis = Diagnosis()
        checks = filters.prepare(pod.pod)
        feasible = await self._on_nominated(pod, checks, diagnosis)
        if not feasible:
            feasible = await self._anywhere(pod, profile, checks, diagnosis)
        if not feasible:
            raise Unschedulable(
                len(self._cache.nodes), diagnosis.refusals, frozenset(diagnosis.plugins)
            )
        if len(feasible) == 1:
            return next(iter(feasible))
        return await self._best(pod, feasible)

    async def _on_nominated(self, pod: KnownPod, checks: Checks, diagnosis: Diagnosis) -> Nodes:
        node = self._cache.node(self._cache.nomination(pod))
        if node is None:
            return {}
        if no := refusal_with_nominees(self._cache, pod, checks, node):
            diagnosis.refuse(node.name, *no)
            return {}
        try:
            return await self._ask_extenders(pod, {node.name: node.wire}, diagnosis)
        except ExtenderError as error:
            _log.warning("nominated node not evaluated", node=node.name, error=str(error))
            return {}

    async def _anywhere(
        self,
        pod: KnownPod,
        profile: Profile,
        checks: Checks,
        diagnosis: Diagnosis,
    ) -> Nodes:
        sample = self._sample(pod, profile, checks, diagnosis)
        names_only = all(extender.config.node_cache_capable for extender in self._extenders)
        nodes = {node.name: b"" if names_only else node.wire for node in sample}
        feasible = await self._ask_extenders(pod, nodes, diagnosis)
        if len(feasible) != len(nodes):
            diagnosis.plugins.add(EXTENDER)
        return feasible

    def _sample(
        self,
        pod: KnownPod,
        profile: Profile,
        checks: Checks,
        diagnosis: Diagnosis,
    ) -> list[NodeInfo]:
        nodes, total = self._nodes_in_turn(pod.pod), len(self._cache.nodes)
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self._configuration.percentage_of_nodes_to_score
        enough = sample_size(len(nodes), percentage)
        # Room is seldom held, and this is the innermost loop.
        held = partial(refusal_with_nominees, self._cache, pod, checks)
        refusal = held if self._cache.holds_room else checks.refusal
        found: list[NodeInfo] = []
        for node in nodes:
            if no := refusal(node):
                diagnosis.refuse(node.name, *no)
            else:
                found.append(node)
                if len(found) == enough:
                    break
        self._start = (self._start + len(found) + len(diagnosis.refusals)) % total
        return found

    def _nodes_in_turn(self, pod: Pod) -> list[NodeInfo]:
        nodes = self._cache.nodes
        if (names := named_nodes(pod)) is not None:
            nodes = [node for node in nodes if node.name in names]
        start = self._start % len(nodes) if nodes else 0
        return nodes[start:] + nodes[:start]

    async def _ask_extenders(self, pod: KnownPod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        for extender in self._extenders:
            if not nodes:
                break
            if not extender.config.filter_verb or not extender.is_interested(pod.pod):
                continue
            try:
                nodes = await self._ask(extender, pod, nodes, diagnosis)
            except ExtenderError as error:
                if not extender.config.ignorable:
                    raise
                _log.info("extender skipped", extender=extender.name, error=str(error))
        return nodes

    async def _ask(
        self, extender: Extender, pod: KnownPod, nodes: Nodes, diagnosis: Diagnosis
    ) -> Nodes:
        names_only = extender.config.node_cache_capable
        body = filter_body(pod.wire, nodes, names_only)
        try:
            answer = filter_answer(await extender.call(extender.config.filter_verb, body))
        except AnswerError as error:
            raise ExtenderError(str(error)) from error
        if answer.error:
            raise ExtenderError(answer.error)
        survivors = _survivors(extender.name, answer, nodes, names_only)
        for node, reason in answer.failed.items():
            diagnosis.refusals[node] = Refusal((reason,))
        for node, reason in answer.unresolvable.items():
            diagnosis.refusals[node] = Refusal((reason,), unresolvable=True)
        return survivors

    async def _best(self, pod: KnownPod, nodes: Nodes) -> str:
        interested = [e for e in self._extenders if e.is_interested(pod.pod)]
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(self._scores(e, pod, nodes)) for e in interested]
        answers = [call.result() for call in calls]
        totals = dict.fromkeys(nodes, 0)
        # Nodes that an extender has spoken about win ties, at random among themselves.
        luck = dict.fromkeys(nodes, 0.0)
        for host, score in (score for scores in answers for score in scores):
            if host in totals:
                totals[host] = _wrapped(totals[host] + score)
                luck[host] = 1.0 + self._rng.random()
        return max(nodes, key=lambda node: (totals[node], luck[node]))

    async def _scores(
        self, extender: Extender, pod: KnownPod, nodes: Nodes
    ) -> Iterable[tuple[str, int]]:
        config = extender.config
        if not config.prioritize_verb:
            return [(node, 0) for node in nodes]
        body = filter_body(pod.wire, nodes, config.node_cache_capable)
        try:
            scores = score_answer(await extender.call(config.prioritize_verb, body))
        except (ExtenderError, AnswerError) as error:
            # kube-scheduler says so only at verbosity 5.
            _log.debug("no scores from extender", extender=extender.name, error=str(error))
            return []
        return [(host, score * config.weight * _SCALE) for host, score in scores]


def refusal_with_nominees(
    cache: Cache, pod: KnownPod, checks: Checks, node: NodeInfo
) -> tuple[str, Refusal] | None:
    """Check a node as it is, and as it will be once pods have come for which room is held on it."""
    if nominees := cache.nominees(node.name, pod):
        fuller = node.copy()
        for other in nominees:
            fuller.add(other)
        if no := checks.refusal(fuller):
            return no
    return checks.refusal(node)


def _survivors(url: str, answer: FilterAnswer, nodes: Nodes, names_only: bool) -> Nodes:
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


def _name(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name", ""))


def _wrapped(score: int) -> int:
    return (score + 2**63) % 2**64 - 2**63  # int64 arithmetic, as in Go
