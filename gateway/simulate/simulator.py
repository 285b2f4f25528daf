"""Answers questions: what the profile's plugins would say of each node, now."""

import asyncio
from collections.abc import Sequence

import numpy as np

from gateway.calls import CallFailedError, FilterOutcome, NodeSet
from gateway.cluster.cluster import Cluster
from gateway.cycle.bind_check import STALE
from gateway.cycle.phases.filtering import UNKNOWN_NODE
from gateway.policy.policy import PolicyHolder
from gateway.simulate.asking import Services
from gateway.simulate.composing import Findings, compose
from gateway.simulate.question import Question


class Simulator:
    """Answers questions."""

    def __init__(self, cluster: Cluster, policy: PolicyHolder, services: Services) -> None:
        self._cluster = cluster
        self._policy = policy
        self._services = services

    def require_ready(self) -> None:
        """Check that the gateway knows enough to answer.

        Raises:
            CallFailedError: It does not; the words are those of the edge.
        """
        if not self._cluster.synced():
            raise CallFailedError("Moorage has not read the cluster yet")
        if self._cluster.is_stale():
            raise CallFailedError(STALE)
        if self._policy.resolved is None:
            raise CallFailedError("Moorage has no policy yet; see /readyz of its gateway")

    async def filter(self, question: Question, nodes: NodeSet) -> FilterOutcome:
        """Return which of *nodes* the pod may use, as the edge answers it, without a claim.

        Raises:
            BadRequestError: A service refuses the question.
            CallFailedError: It fails.
        """
        self.require_ready()
        if question.profile not in self._policy.dependencies.filters:
            return FilterOutcome(feasible=nodes)
        failed: dict[str, str] = {}
        unresolvable = dict.fromkeys(question.unknown, UNKNOWN_NODE)
        if question.names:
            for each in (await self._services.filter(question)).rejected:
                target = unresolvable if each.reason.unresolvable else failed
                target[each.node] = each.reason.text
        kept = np.array([name not in failed and name not in unresolvable for name in nodes.names])
        return FilterOutcome(
            feasible=nodes.restricted(kept) if len(kept) else nodes,
            failed=failed,
            unresolvable=unresolvable,
        )

    async def answer(self, question: Question) -> bytes:
        """Return the verdicts by plugin and the ranking, in words too; raises the same."""
        self.require_ready()
        dependencies, profile = self._policy.dependencies, question.profile
        filtered, scored, no_scores = None, None, ""
        feasible: Sequence[str] = question.names
        if profile in dependencies.filters and question.names:
            filtered = await self._services.filter(question)
            feasible = list(filtered.feasible)
        if profile in dependencies.scores and feasible:
            try:
                scored = await self._services.score(question, feasible)
            except CallFailedError as error:  # kube-scheduler goes on without scores
                no_scores = str(error)
        findings = Findings(
            question=question,
            policy_revision=self._policy.revision,
            scale=self._policy.score_scale,
            filtered=filtered,
            scored=scored,
            no_scores=no_scores,
        )
        # With thousands of nodes this takes a while, in which live pods must not wait.
        return await asyncio.to_thread(compose, findings)
