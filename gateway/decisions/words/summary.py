"""Says in short why a pod goes to its node, for the plugins of the binder."""

from gateway.decisions.records import Decision, NodeScoreRecord
from gateway.decisions.words.dominant import dominant
from moorage import DecisionSummary, ScoredNode


def summary(decision: Decision, node: str) -> DecisionSummary:
    """Return what decided for *node*, with the best other node."""
    top = decision.score.top if decision.score else []
    winner = next((each for each in top if each.node == node), None)
    second = next((each for each in top if each.node != node), None)
    return DecisionSummary(
        winner=_scored(winner) if winner else ScoredNode(node=node),
        runner_up=_scored(second) if second else None,
        reason=dominant(decision, node),
        nodes=decision.filter.nodes if decision.filter else 0,
        feasible=decision.filter.feasible if decision.filter else 0,
        policy_revision=decision.policy_revision,
        generation=decision.generation,
    )


def _scored(node: NodeScoreRecord) -> ScoredNode:
    counted = sorted(node.plugins, key=lambda score: -score.normalized * score.weight)
    return ScoredNode(
        node=node.node,
        score=node.total,
        plugins={score.plugin: score.normalized for score in counted},
    )
