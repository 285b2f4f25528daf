"""Says in sentences what a decision amounts to: what decided, and what else counted.

For people, so it is worked out when somebody asks, from what the record keeps. What lists show of a
decision and are searched by, and what the binder's plugins get of it, is worked out here too.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gateway.cycle.answers import whole
from gateway.cycle.decision import (
    Decision,
    FilterRecord,
    NodeScoreRecord,
    Outcome,
    PluginRecord,
    ReasonCount,
    ScoreRecord,
)
from gateway.decisions.groups import SHOWN, group_sentence
from moorage import DecisionSummary, ScoredNode

FINEST_SCALE = 1000
"""The largest `scoreScale`."""

UNDECIDED = (
    "Moorage bound it and has no decision about it: kube-scheduler went on without one, or the "
    "gateway restarted since"
)

TotalOf = Callable[[str], float | None]
"""Returns Moorage's total for a node of the attempt; None if it is not kept."""


def reason(decision: Decision, place: str = "", total_of: TotalOf | None = None) -> str:
    """Return what decided, in one sentence; "" while nothing has yet.

    Args:
        decision: The attempt.
        place: The pod's node as the cluster shows it, for pods that Moorage does not bind.
        total_of: The totals of nodes that are not among the best.
    """
    return next(_sentences(decision, place, total_of), "")


def sentences(decision: Decision, place: str = "", total_of: TotalOf | None = None) -> list[str]:
    """Return what made the decision: first `reason`, then what else counted.

    Nothing that the record does not prove.
    """
    return list(dict.fromkeys(_sentences(decision, place, total_of)))


def differences(one: NodeScoreRecord, other: NodeScoreRecord) -> Mapping[str, float]:
    """Return what each plugin adds to the lead of *one* over *other*; their sum is the lead."""
    weights = sum(score.weight for score in one.plugins)
    others = {score.plugin: score.normalized for score in other.plugins}
    return {
        score.plugin: (score.normalized - others.get(score.plugin, 0.0)) * score.weight / weights
        for score in one.plugins
    }


def _sentences(decision: Decision, place: str, total_of: TotalOf | None) -> Iterator[str]:
    bound = decision.bind.node if decision.bind else place
    filtered, claim, score = decision.filter, decision.claim, decision.score
    yield from _errors(decision)
    if filtered is None and decision.preempt is not None:
        yield _preempted(decision.preempt)
    elif filtered is not None and not filtered.feasible:
        if decision.group is not None and not decision.group.fits:
            yield group_sentence(decision.group)
        if not decision.error:
            yield f"no node suits it: {_rejections(filtered)}"
    elif filtered is not None and filtered.nodes == 1:
        yield f"kube-scheduler offered one node only{_held(decision)}"
    elif filtered is not None and filtered.feasible == 1:
        yield f"one node of {filtered.nodes} was left: {_rejections(filtered)}{_held(decision)}"
    elif claim is not None:
        yield f"{_claimed(decision, claim.node)}{_held(decision)}"
    elif filtered is not None or score is not None:
        yield from _chosen(decision, bound, total_of)
    elif decision.bind is not None and not decision.bind.error:
        yield UNDECIDED
    yield from _failures(decision)
    if filtered is not None:
        yield from _all_rejections(filtered)


def _errors(decision: Decision) -> Iterator[str]:
    """Yield why the attempt came to nothing."""
    check, bind = decision.bind_check, decision.bind
    if decision.error:
        yield f"the attempt failed: {decision.error}"
    if check is not None and check.error:
        yield f"the bind to {check.node} was refused: {check.error}"
    elif bind is not None and bind.error:
        yield f"the bind to {bind.node} failed: {bind.error}"


def _failures(decision: Decision) -> Iterator[str]:
    """Yield what failed though the attempt went on without it."""
    for phase in (decision.filter, decision.score):
        for plugin in phase.plugins if phase else ():
            if plugin.failure:
                yield f"{plugin.plugin} failed: {plugin.failure}"
    if decision.score_error:
        yield f"no scores: {decision.score_error}"


# ---- filters


def _preempted(record: FilterRecord) -> str:
    kept = f"{record.feasible} of {record.nodes}"
    return f"kube-scheduler looked for pods to evict; Moorage let {kept} nodes pass"


def _rejections(record: FilterRecord) -> str:
    """Return which plugin rejected the most nodes and why, and how many are left for others."""
    rejecting = _rejecting(record)
    if not rejecting:
        return f"none of the {record.nodes} nodes is known to Moorage"
    first, *others = rejecting
    counts = {
        "other plugins": sum(each.rejected for each in others),
        "not known to Moorage": record.unknown_nodes,
    }
    rest = ", ".join(f"{who} {nodes}" for who, nodes in counts.items() if nodes)
    return (
        f"{first.plugin} rejected {first.rejected} of {record.nodes}: {_counted(first.reasons)}"
        f"{f' ({rest})' if rest else ''}"
    )


def _all_rejections(record: FilterRecord) -> Iterator[str]:
    """Yield what each plugin rejected, unless `_rejections` has all of it."""
    rejecting = _rejecting(record)
    for plugin in rejecting if len(rejecting) > 1 or record.feasible > 1 else ():
        counted = _counted(plugin.reasons)
        yield f"{plugin.plugin} rejected {plugin.rejected} of {record.nodes} nodes: {counted}"


def _rejecting(record: FilterRecord) -> list[PluginRecord]:
    rejecting = [each for each in record.plugins if each.rejected]
    return sorted(rejecting, key=lambda each: -each.rejected)


def _counted(reasons: Sequence[ReasonCount]) -> str:
    """Return the reasons, with the number of nodes of each if there are several."""
    if len(reasons) == 1:
        return reasons[0].reason
    ranked = sorted(reasons, key=lambda each: -each.nodes)
    more = ["..."] if len(ranked) > SHOWN else []
    return ", ".join([*(f"{each.nodes} {each.reason}" for each in ranked[:SHOWN]), *more])


# ---- scores


def _claimed(decision: Decision, node: str) -> str:
    """Return why the gateway chose *node* among several, so that kube-scheduler had no choice."""
    score, group = decision.score, decision.group
    count = decision.filter.feasible if decision.filter else 0
    if group is not None and group.fits:
        return f"{node} is its place in the trial placement of group {group.name}"
    if score is None or not score.top:
        why = decision.score_error or f"Moorage {_without_scores(score)}"
        return f"{node} was drawn among {count} feasible nodes: {why}"
    if _shared(score) > 1:
        return f"{node} was drawn among {_ties(score)}"
    return lead(score.top[0], score.top[1]) if len(score.top) > 1 else _only(score.top[0])


def _held(decision: Decision) -> str:
    """Return which plugins had the node held until the bind; "" if none had."""
    if (claim := decision.claim) is None:
        return ""
    return f"; claimed for {', '.join(claim.plugins)}, so kube-scheduler is offered no other node"


def _shared(score: ScoreRecord) -> int:
    """Return how many nodes have the best total."""
    return max(score.best, sum(each.total == score.top[0].total for each in score.top))


def _ties(score: ScoreRecord) -> str:
    return f"{_shared(score)} nodes that tie for Moorage's best total, {score.top[0].total:.4g}"


def _only(best: NodeScoreRecord) -> str:
    return f"{best.node} has Moorage's best total, {best.total:.4g}"


def _chosen(decision: Decision, bound: str, total_of: TotalOf | None) -> Iterator[str]:
    """Yield how kube-scheduler came to choose among several nodes, as far as that is known."""
    score = decision.score
    count = decision.filter.feasible if decision.filter else 0
    if decision.score_error:
        yield f"kube-scheduler chose among {count} nodes without scores: {decision.score_error}"
    elif score is None or not score.top:
        yield f"kube-scheduler chose among {count} nodes: Moorage {_without_scores(score)}"
    else:
        best, *others = score.top
        is_shared = _shared(score) > 1
        if bound and (bound != best.node or is_shared):
            yield _other_node(score, bound, total_of)
        elif is_shared:
            yield f"kube-scheduler chooses among {_ties(score)}"
        if score.tied:
            yield _tie(score)
        if not others:
            yield _only(best)
        elif not is_shared:
            yield lead(best, others[0])


def _without_scores(score: ScoreRecord | None) -> str:
    for plugin in score.plugins if score is not None else ():
        if plugin.failure:
            return f"gave no scores since {plugin.plugin} failed: {plugin.failure}"
    for plugin in score.plugins if score is not None else ():
        if plugin.skipped:
            note = f": {plugin.note}" if plugin.note else ""
            return f"gave no scores since {plugin.plugin} skipped the pod{note}"
    return "gave no scores"


def lead(best: NodeScoreRecord, second: NodeScoreRecord) -> str:
    """Return by how much Moorage prefers one node to another, and which plugins make it so."""
    if best.total == second.total:
        return f"{best.node} and {second.node} tie for Moorage's total {best.total:.4g}"
    ranked = sorted(differences(best, second).items(), key=lambda part: -abs(part[1]))
    parts = ", ".join(f"{plugin} {part:+.3g}" for plugin, part in ranked[:SHOWN] if part)
    return (
        f"Moorage prefers {best.node} to {second.node}, {best.total:.4g} to {second.total:.4g}"
        f"{f': {parts}' if parts else ''}"
    )


def _tie(score: ScoreRecord) -> str:
    """Return that rounding made nodes equal to the best one, and what a finer scale would change.

    kube-scheduler's own points are not known here, so nor is which node would win with it.
    """
    best, *others = score.top
    text = (
        f"{best.node} is tied with {score.tied} other{'s' if score.tied > 1 else ''} after "
        f"rounding to {score.scale} steps, so kube-scheduler saw them alike"
    )
    if not others or others[0].total == best.total:
        return text
    scale, ahead = score.scale * 10, f"a lead of {best.total - others[0].total:.2g} of 100"
    steps = _steps(best.total, scale) - _steps(others[0].total, scale)
    if scale > FINEST_SCALE or not steps:
        return f"{text}: {ahead}, so spread the scores in `normalize`"
    return f"{text}: {ahead}, at scoreScale {scale} worth {steps} x 10 x the extender's weight"


def _steps(total: float, scale: int) -> int:
    """Return the whole number that is sent for a total."""
    return int(whole(total, scale))


def is_tie(score: ScoreRecord, total: float) -> bool:
    """Return whether kube-scheduler saw a total as it saw the best one; never if none was sent."""
    return score.scale > 0 and _steps(total, score.scale) == _steps(score.top[0].total, score.scale)


def _other_node(score: ScoreRecord, bound: str, total_of: TotalOf | None) -> str:
    """Return why the pod is on *bound*, which is not Moorage's one best node."""
    best = score.top[0]
    total = None
    for each in score.top:
        if each.node == bound:
            total = each.total
    if total is None and total_of is not None:
        total = total_of(bound)
    if total is None:
        return (
            f"kube-scheduler chose {bound}, whose total is not kept: it is not among Moorage's "
            f"best {len(score.top)}, of which {best.node} is the first, {best.total:.4g}"
        )
    if math.isclose(total, best.total, rel_tol=1e-6):  # arrays are of single precision
        return f"kube-scheduler chose {bound} among {_ties(score)}"
    steps = _steps(best.total, score.scale) - _steps(total, score.scale)
    if not steps:
        return (
            f"kube-scheduler chose {bound}, {total:.4g}, by its own scores or by lot: after "
            f"rounding it ties with {best.node}, {best.total:.4g}"
        )
    return (
        f"kube-scheduler's own scores outvoted Moorage's: it chose {bound}, {total:.4g}, "
        f"over {best.node}, {best.total:.4g}, a lead of {steps} x 10 x the extender's weight"
    )


# ---- what lists show, and what plugins of the binder get


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of an attempt.

    Attributes:
        outcome: That.
        node: The node that the pod went to, was to be bound to, or has claimed; "" for none.
        plugins: The plugins that decided: they rejected nodes, failed, wanted the claim, or counted
            most for the best node over the next.
    """

    outcome: Outcome
    node: str
    plugins: tuple[str, ...]

    def at(self, place: str) -> "Facts":
        """Return the facts if the cluster shows the pod on the node *place*, "" for none."""
        if not place or self.outcome != "binding":
            return self
        return Facts(outcome="bound", node=place, plugins=self.plugins)


def facts(decision: Decision) -> Facts:
    """Return the facts of an attempt."""
    record = decision.bind or decision.bind_check or decision.claim
    plugins = dict.fromkeys(map(sys.intern, _plugins(decision)))
    return Facts(
        outcome=_outcome(decision),
        node=record.node if record is not None else "",
        plugins=tuple(plugins),
    )


def runner_up(decision: Decision, node: str) -> str:
    """Return the best node other than *node*; "" if there is none, or it is not known."""
    top = decision.score.top if decision.score else []
    return next((each.node for each in top if each.node != node), "")


def summary(decision: Decision, node: str, total_of: TotalOf | None = None) -> DecisionSummary:
    """Return what decided for *node*, with the best other node."""
    top = decision.score.top if decision.score else []
    winner: NodeScoreRecord | None = None
    second: NodeScoreRecord | None = None
    for each in top:
        if each.node == node:
            winner = winner or each
        else:
            second = second or each
    return DecisionSummary(
        winner=_scored(winner) if winner else ScoredNode(node=node),
        runner_up=_scored(second) if second else None,
        reason=reason(decision, node, total_of),
        nodes=decision.filter.nodes if decision.filter else 0,
        feasible=decision.filter.feasible if decision.filter else 0,
        policy_revision=decision.policy_revision,
        generation=decision.generation,
    )


def _outcome(decision: Decision) -> Outcome:
    if decision.bind is not None:
        return "bind failed" if decision.bind.error else "bound"
    if decision.bind_check is not None and decision.bind_check.error:
        return "bind failed"
    if decision.error:
        return "failed"
    if decision.preempt is not None:
        return "preempting"
    if decision.filter is None:
        return "binding" if decision.score is not None else "deciding"
    return "binding" if decision.filter.feasible else "unschedulable"


def _plugins(decision: Decision) -> Iterator[str]:
    for phase in (decision.filter, decision.preempt, decision.score):
        if phase is not None:
            yield from (each.plugin for each in phase.plugins if each.rejected or each.failure)
    if decision.claim is not None:
        yield from decision.claim.plugins
    if decision.score is not None and len(decision.score.top) > 1:
        parts = differences(*decision.score.top[:2])
        plugin = max(parts, key=lambda name: parts[name], default="")
        if plugin and parts[plugin] > 0:
            yield plugin


def _scored(node: NodeScoreRecord) -> ScoredNode:
    counted: list[tuple[float, int]] = []
    for index, score in enumerate(node.plugins):
        counted.append((-score.normalized * score.weight, index))
    plugins: dict[str, float] = {}
    for _, index in sorted(counted):
        plugins[node.plugins[index].plugin] = node.plugins[index].normalized
    return ScoredNode(node=node.node, score=node.total, plugins=plugins)
