"""Answers questions: what the profile's plugins would say of each node, now."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from zlib import crc32

import numpy as np

from gateway.calls import CallFailedError, FilterOutcome, NodeSet
from gateway.cluster.cluster import Cluster
from gateway.cycle.bind_check import STALE
from gateway.cycle.phases.filtering import UNKNOWN_NODE
from gateway.decisions.from_protobuf import node_score, plugin_records
from gateway.decisions.records import (
    Decision,
    FilterRecord,
    NodeScoreRecord,
    PluginRecord,
    ReasonCount,
    ScoreRecord,
)
from gateway.decisions.words.comparing import explained
from gateway.decisions.words.dominant import dominant
from gateway.policy.policy import PolicyHolder
from gateway.simulate.answers import Answer, Claim, Ranked, Verdict
from gateway.simulate.asking import Services
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

    async def answer(self, question: Question) -> Answer:
        """Return the verdicts by plugin and the ranking, in words too; raises the same."""
        self.require_ready()
        dependencies, decision = self._policy.dependencies, self._decision(question)
        verdicts = [_unknown(name) for name in question.unknown]
        record = FilterRecord(
            nodes=len(question.names) + len(question.unknown),
            unknown_nodes=len(question.unknown),
            feasible=len(question.names),
            seconds=0.0,
        )
        feasible = list(question.names)
        if question.profile in dependencies.filters and question.names:
            response = await self._services.filter(question)
            decision.generation = response.generation
            rejected = {each.node: each.reason for each in response.rejected}
            verdicts += [
                Verdict(node=node, plugin=r.plugin, reason=r.text, unresolvable=r.unresolvable)
                for node, r in rejected.items()
            ]
            feasible = list(response.feasible)
            record.plugins, record.feasible = plugin_records(response.plugins), len(feasible)
            record.claimants = list(response.claimants)
            _count(record.plugins, verdicts)
        decision.filter = record
        ranking: list[NodeScoreRecord] = []
        if question.profile in dependencies.scores and feasible:
            ranking = await self._rank(question, feasible, decision)
        claim = _claim(question, record.claimants, feasible, ranking)
        words = [dominant(decision), *explained(decision)]
        if claim:
            words.append(
                f"{claim.node} would be claimed for {', '.join(claim.plugins)}: kube-scheduler "
                "would be offered no other node"
            )
        return Answer(
            pod=f"{decision.namespace}/{decision.pod}",
            profile=question.profile,
            policy_revision=decision.policy_revision,
            generation=decision.generation,
            words=list(dict.fromkeys(filter(None, words))),
            nodes=record.nodes,
            feasible=feasible,
            rejected=verdicts,
            filter=record.plugins,
            score=decision.score.plugins if decision.score else [],
            ranking=_ranked(ranking, self._policy.score_scale),
            claim=claim,
            no_scores=decision.score_error,
        )

    async def _rank(
        self, question: Question, feasible: Sequence[str], decision: Decision
    ) -> list[NodeScoreRecord]:
        """Return the feasible nodes, the best first; none without scores."""
        try:
            response = await self._services.score(question, feasible)
        except CallFailedError as error:  # kube-scheduler goes on without scores
            decision.score_error = str(error)
            return []
        ranking = [node_score(each) for each in response.nodes]
        decision.score = ScoreRecord(
            nodes=len(feasible),
            seconds=0.0,
            plugins=plugin_records(response.plugins),
            top=ranking,
            scale=self._policy.score_scale,
            tied=_tied(ranking, self._policy.score_scale),
        )
        decision.generation = decision.generation or response.generation
        return ranking

    def _decision(self, question: Question) -> Decision:
        """Return a decision that nobody keeps."""
        return Decision(
            namespace=question.pod.namespace,
            pod=question.pod.name,
            uid=question.pod.uid,
            time=datetime.now(UTC),
            profile=question.profile,
            policy_revision=self._policy.revision,
        )


def _unknown(node: str) -> Verdict:
    return Verdict(node=node, plugin="", reason=UNKNOWN_NODE, unresolvable=True)


def _count(plugins: Sequence[PluginRecord], verdicts: Sequence[Verdict]) -> None:
    by_name = {each.plugin: each for each in plugins}
    counts = Counter((v.plugin, v.reason, v.unresolvable) for v in verdicts if v.plugin in by_name)
    for (plugin, reason, unresolvable), count in counts.items():
        by_name[plugin].rejected += count
        by_name[plugin].reasons = [
            *by_name[plugin].reasons,
            ReasonCount(reason=reason, nodes=count, unresolvable=unresolvable),
        ]


def _claim(
    question: Question,
    claimants: Sequence[str],
    feasible: Sequence[str],
    ranking: Sequence[NodeScoreRecord],
) -> Claim | None:
    """Return what the gateway would claim; see `gateway.cycle.claims`."""
    if not claimants or not feasible:
        return None
    best = set(feasible)
    if ranking:
        best = {each.node for each in ranking if each.total == ranking[0].total}
    ordered = [name for name in feasible if name in best]
    node = ordered[crc32(question.pod.uid.encode()) % len(ordered)]
    return Claim(node=node, plugins=list(claimants))


def _whole(total: float, scale: int) -> int:
    return int(total * scale / 100 + 0.5)


def _tied(ranking: Sequence[NodeScoreRecord], scale: int) -> int:
    if not ranking:
        return 0
    best = ranking[0].total
    return sum(
        each.total != best and _whole(each.total, scale) == _whole(best, scale) for each in ranking
    )


def _ranked(ranking: Sequence[NodeScoreRecord], scale: int) -> list[Ranked]:
    return [
        Ranked(
            rank=number,
            node=each.node,
            total=each.total,
            score=_whole(each.total, scale),
            plugins=each.plugins,
        )
        for number, each in enumerate(ranking, start=1)
    ]
