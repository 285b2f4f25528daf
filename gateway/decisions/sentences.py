"""Says in sentences what a decision amounts to: what decided, and what else counted.

For people, so it is worked out when somebody asks, from what the record keeps. How the trial
placement of a group ended is here too, and what the plugins of the binder get of a decision.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from gateway.cycle.answers import whole
from gateway.cycle.decision import (
    Decision,
    FilterRecord,
    GroupRecord,
    NodeScoreRecord,
    PluginRecord,
    ReasonCount,
    ScoreRecord,
)
from gateway.decisions.log import differences
from moorage import DecisionSummary, ScoredNode

SHOWN = 3
"""Pods, nodes, plugins or reasons that a sentence names, those that count most."""

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


# ---- groups


def group_sentence(group: GroupRecord) -> str:
    """Return the state of a group in one sentence."""
    place = f" in {_label(group)} {group.domain}" if group.domain else ""
    placed = group.on_nodes + group.fitting
    if group.fits:
        return f"group {group.name} fits: {placed} of {group.members} have a node{place}"
    if group.problem and group.members < group.min_count:
        return f"group {group.name} has {group.members} of {group.min_count} pods"
    if group.problem:
        return f"group {group.name} waits: {group.problem}"
    if group.ahead:
        return f"group {group.name} waits for group {group.ahead}, which is ahead of it and fits"
    missing = group.min_count - placed
    head = f"group {group.name} does not fit: {placed} of {group.min_count} placed{place}"
    if missing < 1:
        return f"{head}, but {group.failing} found no node"
    verb = "needs" if missing == 1 else "need"
    if not group.lacking:
        reason = f": {group.reasons[0].reason}" if group.reasons else ""
        return f"{head}; {missing} found no node{reason}"
    return f"{head}; {missing} {verb} {group.lacking}, which {_free(group)}"


def group_evidence(group: GroupRecord, gated: Sequence[str] = ()) -> Iterator[str]:
    """Yield why the newest member that found no node was rejected, and who is *gated*."""
    if gated and group.members < group.min_count:
        more = ", ..." if len(gated) > SHOWN else ""
        shown = ", ".join(gated[:SHOWN])
        verb = "waits" if len(gated) == 1 else "wait"
        yield f"{len(gated)} more {verb} for scheduling gates: {shown}{more}"
    if group.failing and group.reasons:
        counted = ", ".join(
            f"{each.nodes} {each.reason} ({', '.join(each.examples)}"
            f"{', ...' if each.nodes > len(each.examples) else ''})"
            for each in group.reasons
        )
        yield f"nodes for {group.failing}: {counted}"


def group_steps(group: GroupRecord, gated: Sequence[str] = (), existing: int = 0) -> list[str]:
    """Return what would help; so many pods of the group are *existing*, the *gated* ones wait."""
    if group.members < group.min_count:
        missing = group.min_count - max(group.members + len(gated), existing)
        if missing < 1 and not gated:
            return ["wait: all pods of the group exist by now"]
        steps = ["whoever set the gates has to remove them from spec.schedulingGates"][: len(gated)]
        if missing > 0:
            steps.append(f"{missing} more pod{'s' * (missing > 1)} of the group must be created")
        return steps
    if group.problem:
        return ["change the labels of its pods, or its PodGroup"]
    if group.ahead:
        return [f"group {group.ahead} is placed first, or is passed over once it is not tried"]
    if group.more_nodes:
        nodes = f"{group.more_nodes} more node{'s' * (group.more_nodes > 1)} like {group.like}"
        where = f" in {_label(group)} {group.domain}" if group.domain else ""
        return [f"with {nodes}{where} it starts, or with as much {group.lacking} freed"]
    return []


def _free(group: GroupRecord) -> str:
    if not group.lacking_free:
        return "no node has free"
    nodes = f"{group.lacking_free} node{'s' * (group.lacking_free > 1)}"
    if group.lacking_domain:
        return f"is free on {nodes} of {_label(group)} {group.lacking_domain} only"
    return f"is free on {nodes} only"


def _label(group: GroupRecord) -> str:
    """Return the topology label as a word: "rack" for "example.com/rack"."""
    return group.topology_key.rpartition("/")[2]


# ---- what plugins of the binder get


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


def _scored(node: NodeScoreRecord) -> ScoredNode:
    counted: list[tuple[float, int]] = []
    for index, score in enumerate(node.plugins):
        counted.append((-score.normalized * score.weight, index))
    plugins: dict[str, float] = {}
    for _, index in sorted(counted):
        plugins[node.plugins[index].plugin] = node.plugins[index].normalized
    return ScoredNode(node=node.node, score=node.total, plugins=plugins)
