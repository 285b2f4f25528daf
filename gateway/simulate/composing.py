"""Composes the answer to a question from what the services answered; runs in a thread."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from zlib import crc32

import msgspec

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
from gateway.decisions.sentences import sentences
from gateway.simulate.answers import Answer, Claim, Ranked, Verdict
from gateway.simulate.question import Question
from moorage.v1 import filter_pb2, scorer_pb2


class Findings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What was asked, and what came back.

    Attributes:
        question: What was asked.
        policy_revision: That of the policy.
        scale: The policy's `scoreScale`.
        filtered: The answer of the filter service; None if the profile has no filter plugins.
        scored: That of the scorer service; None without scores.
        no_scores: Why there are none although the profile has score plugins.
    """

    question: Question
    policy_revision: str
    scale: int
    filtered: filter_pb2.FilterResponse | None = None
    scored: scorer_pb2.ScoreResponse | None = None
    no_scores: str = ""


def compose(findings: Findings) -> bytes:
    """Return the answer as JSON."""
    question, filtered, scored = findings.question, findings.filtered, findings.scored
    verdicts = [_unknown(name) for name in question.unknown]
    feasible = list(question.names)
    if filtered is not None:
        feasible = list(filtered.feasible)
        verdicts += [_rejected(each) for each in filtered.rejected]
    ranking = [node_score(each) for each in scored.nodes] if scored is not None else []
    decision = _decision(findings, verdicts, len(feasible), ranking)
    claim = _claim(question, filtered.claimants if filtered else (), feasible, ranking)
    answer = Answer(
        pod=f"{decision.namespace}/{decision.pod}",
        profile=question.profile,
        policy_revision=findings.policy_revision,
        generation=decision.generation,
        words=_words(decision, claim),
        nodes=len(question.names) + len(question.unknown),
        feasible=feasible,
        rejected=verdicts,
        filter=decision.filter.plugins if decision.filter else [],
        score=decision.score.plugins if decision.score else [],
        ranking=_ranked(ranking, findings.scale),
        claim=claim,
        no_scores=findings.no_scores,
    )
    return msgspec.json.encode(answer)


def _decision(
    findings: Findings,
    verdicts: Sequence[Verdict],
    feasible: int,
    ranking: list[NodeScoreRecord],
) -> Decision:
    """Return a decision that nobody keeps: for its words."""
    question, filtered, scored = findings.question, findings.filtered, findings.scored
    newest = filtered if filtered is not None else scored
    decision = Decision(
        namespace=question.pod.namespace,
        pod=question.pod.name,
        uid=question.pod.uid,
        time=datetime.now(UTC),
        profile=question.profile,
        policy_revision=findings.policy_revision,
        generation=newest.generation if newest is not None else 0,
        score_error=findings.no_scores,
    )
    plugins = plugin_records(filtered.plugins) if filtered is not None else []
    _count(plugins, verdicts)
    decision.filter = FilterRecord(
        nodes=len(question.names) + len(question.unknown),
        unknown_nodes=len(question.unknown),
        feasible=feasible,
        seconds=0.0,
        plugins=plugins,
    )
    if scored is not None:
        decision.score = ScoreRecord(
            nodes=feasible,
            seconds=0.0,
            plugins=plugin_records(scored.plugins),
            top=ranking,
            scale=findings.scale,
            tied=_tied(ranking, findings.scale),
        )
    return decision


def _words(decision: Decision, claim: Claim | None) -> list[str]:
    words = sentences(decision)
    if claim:
        words.append(
            f"{claim.node} would be claimed for {', '.join(claim.plugins)}: kube-scheduler "
            "would be offered no other node"
        )
    return words


def _rejected(rejection: filter_pb2.NodeRejection) -> Verdict:
    reason = rejection.reason
    return Verdict(
        node=rejection.node,
        plugin=reason.plugin,
        reason=reason.text,
        unresolvable=reason.unresolvable,
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
