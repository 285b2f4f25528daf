"""What `POST /simulate` answers, made of what the services answered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from gateway.cycle.answers import claimed, ties, whole
from gateway.cycle.decision import (
    UNKNOWN_NODE,
    ClaimRecord,
    Decision,
    FilterRecord,
    GroupRecord,
    NodeScoreRecord,
    PluginRecord,
    PluginScoreRecord,
    ReasonCount,
    Record,
    ScoreRecord,
)
from gateway.decisions.nodes import NodeView
from gateway.decisions.sentences import sentences
from gateway.replicas.reading import read_group, read_reports
from gateway.whatif.question import Question
from moorage.v1 import filter_pb2, scorer_pb2

SHOWN = 5
"""Nodes of the ranking that a side of a comparison shows."""


class Ranked(NodeScoreRecord, kw_only=True):
    """A feasible node: its place, from 1 on, shared by equal ones; what is sent for its total."""

    rank: int
    score: int


class Answer(Record):
    """What the plugins of a profile say of a pod, now.

    Attributes:
        pod: NAMESPACE/NAME.
        profile: The profile.
        policy_revision: That of the policy.
        generation: That of the state that was used.
        words: The same in sentences; the first is what decides.
        nodes: How many nodes the question is about.
        feasible: The nodes that the pod may use.
        rejected: The others; no plugin rejects one that the cluster does not have.
        filter: What each filter plugin did.
        score: What each score plugin did.
        ranking: The feasible nodes, the best first; empty without scores.
        claim: The node that the pod would claim; None if no plugin wants that.
        group: How the trial placement of the pod's group ended; None without a group.
        no_scores: Why there is no ranking although the profile has score plugins.
    """

    pod: str
    profile: str
    policy_revision: str
    generation: int
    words: list[str]
    nodes: int
    feasible: list[str]
    rejected: list[NodeView]
    filter: list[PluginRecord]
    score: list[PluginRecord]
    ranking: list[Ranked]
    claim: ClaimRecord | None = None
    group: GroupRecord | None = None
    no_scores: str = ""


def compose(
    question: Question,
    filtered: filter_pb2.FilterResponse | None,
    scored: scorer_pb2.ScoreResponse | None,
    *,
    policy_revision: str,
    scale: int,
    no_scores: str,
) -> Answer:
    """Return the answer; takes a while for thousands of nodes.

    *filtered* is None without filter plugins, *scored* without scores, and *no_scores* says why
    although the profile has score plugins.
    """
    verdicts = [
        NodeView(node=name, verdict="rejected", reason=UNKNOWN_NODE, unresolvable=True)
        for name in question.unknown
    ]
    feasible, claimants = list(question.names), list[str]()
    if filtered is not None:
        feasible, claimants = list(filtered.feasible), list(filtered.claimants)
        verdicts += [
            NodeView(
                node=each.node,
                verdict="rejected",
                plugin=each.reason.plugin,
                reason=each.reason.text,
                unresolvable=each.reason.unresolvable,
                cured_by=each.reason.cured_by,
            )
            for each in filtered.rejected
        ]
    ranking = _ranking(scored.nodes) if scored is not None else []
    names = [each.node for each in ranking] or feasible
    totals = np.array([each.total for each in ranking], np.float32)  # as in cycles
    sent = whole(totals, scale)
    best, tied = ties(totals, sent)
    ranks = np.searchsorted(-totals, -totals) + 1  # equal ones share it
    newest = filtered if filtered is not None else scored
    decision = Decision(  # which nobody keeps: for its words
        namespace=question.pod.namespace,
        pod=question.pod.name,
        uid=question.pod.uid,
        time=datetime.now(UTC),
        profile=question.profile,
        policy_revision=policy_revision,
        generation=newest.generation if newest is not None else 0,
        score_error=no_scores,
    )
    plugins = read_reports(filtered.plugins) if filtered is not None else []
    _count(plugins, verdicts)
    decision.filter = FilterRecord(
        nodes=len(question.names) + len(question.unknown),
        unknown_nodes=len(question.unknown),
        feasible=len(feasible),
        seconds=0.0,
        plugins=plugins,
    )
    if filtered is not None and filtered.HasField("group"):
        decision.group = read_group(filtered.group)
    if scored is not None:
        decision.score = ScoreRecord(
            nodes=len(feasible),
            seconds=0.0,
            plugins=read_reports(scored.plugins),
            top=ranking,
            scale=scale,
            best=best,
            tied=tied,
        )
    if claimants and feasible:
        position = claimed(question.pod.uid, names, totals if ranking else None)
        decision.claim = ClaimRecord(node=names[position], plugins=claimants)
    return Answer(
        pod=f"{decision.namespace}/{decision.pod}",
        profile=question.profile,
        policy_revision=policy_revision,
        generation=decision.generation,
        words=sentences(decision),
        nodes=decision.filter.nodes,
        feasible=feasible,
        rejected=verdicts,
        filter=plugins,
        score=decision.score.plugins if decision.score else [],
        ranking=[
            Ranked(rank=rank, node=each.node, total=each.total, score=score, plugins=each.plugins)
            for rank, each, score in zip(ranks.tolist(), ranking, sent.tolist(), strict=True)
        ],
        claim=decision.claim,
        group=decision.group,
        no_scores=no_scores,
    )


def side(answer: Answer, *, named: bool) -> dict[str, Any]:
    """Return what people compare of an answer, in few bytes; *named* with the rejected nodes."""
    rejected: dict[tuple[str, str], list[str]] = {}
    for each in answer.rejected:
        rejected.setdefault((each.plugin, each.reason), []).append(each.node)
    best = answer.claim.node if answer.claim else ""
    first = [each.node for each in answer.ranking if each.score == answer.ranking[0].score]
    if not best and len(first) == 1:  # of those that tie, kube-scheduler chooses
        (best,) = first
    if not best and len(answer.feasible) == 1:
        (best,) = answer.feasible
    return {
        "words": answer.words,
        "nodes": answer.nodes,
        "feasible": len(answer.feasible),
        "best": best,
        "top": msgspec.to_builtins(answer.ranking[:SHOWN]),
        "rejected": [
            {"plugin": plugin, "reason": reason, "nodes": len(nodes)}
            | ({"names": nodes} if named else {})
            for (plugin, reason), nodes in sorted(rejected.items(), key=lambda each: -len(each[1]))
        ],
    }


def _ranking(nodes: Iterable[scorer_pb2.NodeScore]) -> list[NodeScoreRecord]:
    return [
        NodeScoreRecord(
            node=node.node,
            total=node.total,
            plugins=[
                PluginScoreRecord(
                    plugin=each.plugin,
                    raw=each.raw,
                    normalized=each.normalized,
                    weight=each.weight,
                )
                for each in node.plugins
            ],
        )
        for node in nodes
    ]


def _count(plugins: Sequence[PluginRecord], verdicts: Sequence[NodeView]) -> None:
    by_name = {each.plugin: each for each in plugins}
    counts = Counter(
        (v.plugin, v.reason, v.unresolvable, v.cured_by) for v in verdicts if v.plugin in by_name
    )
    for (plugin, reason, unresolvable, cured_by), count in counts.items():
        by_name[plugin].rejected += count
        by_name[plugin].reasons = [
            *by_name[plugin].reasons,
            ReasonCount(reason=reason, nodes=count, unresolvable=unresolvable, cured_by=cured_by),
        ]
