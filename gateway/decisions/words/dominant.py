"""Finds the one reason that decided an attempt; `comparing` has all of them."""

from gateway.decisions.records import ClaimRecord, Decision, FilterRecord, PluginRecord, ScoreRecord
from gateway.decisions.words.comparing import bound_node, lead, outvoted, tie


def dominant(decision: Decision, place: str = "") -> str:
    """Return what decided, in one sentence; "" while nothing has yet.

    *place* is the pod's node as the cluster shows it, for pods that Moorage does not bind.
    """
    if decision.error:
        return f"the attempt failed: {decision.error}"
    if decision.bind_check and decision.bind_check.error:
        node = decision.bind_check.node
        return f"the bind to {node} was refused: {decision.bind_check.error}"
    if decision.bind and decision.bind.error:
        return f"the bind to {decision.bind.node} failed: {decision.bind.error}"
    filtered = decision.filter
    if filtered is None:
        return _preempted(decision.preempt) if decision.preempt else ""
    if not filtered.feasible:
        return f"no node suits it: {_rejections(filtered)}"
    if decision.claim:
        return _claimed(decision.claim, filtered)
    if filtered.nodes == 1:
        return "kube-scheduler offered one node only"
    if filtered.feasible == 1:
        return f"one node of {filtered.nodes} was left: {_rejections(filtered)}"
    return _scored(decision, filtered, bound_node(decision, place))


def _claimed(claim: ClaimRecord, filtered: FilterRecord) -> str:
    of = f"the best of {filtered.feasible} feasible nodes"
    if filtered.feasible == 1:
        of = "the only feasible node"
    return f"{claim.node}, {of}, was claimed for {', '.join(claim.plugins)}"


def _scored(decision: Decision, filtered: FilterRecord, bound: str) -> str:
    score, count = decision.score, filtered.feasible
    if decision.score_error:
        return f"kube-scheduler chose among {count} nodes without scores: {decision.score_error}"
    if score is None or not score.top:
        return f"kube-scheduler chose among {count} nodes: Moorage {_without_scores(score)}"
    best, *others = score.top
    is_shared = bool(others) and others[0].total == best.total
    if bound and (bound != best.node or is_shared):
        return outvoted(score, bound)
    if score.tied:
        return tie(score)
    if not others:
        return f"{best.node} has Moorage's best total, {best.total:.4g}"
    return lead(best, others[0])


def _without_scores(score: ScoreRecord | None) -> str:
    if score is None:
        return "gave no scores"
    failed = next((each for each in score.plugins if each.failure), None)
    if failed:
        return f"gave no scores since {failed.plugin} failed: {failed.failure}"
    skipped = next((each for each in score.plugins if each.skipped), None)
    if skipped:
        note = f": {skipped.note}" if skipped.note else ""
        return f"gave no scores since {skipped.plugin} skipped the pod{note}"
    return "gave no scores"


def _preempted(record: FilterRecord) -> str:
    kept = f"{record.feasible} of {record.nodes}"
    return f"kube-scheduler looked for pods to evict; Moorage let {kept} nodes pass"


def _rejections(record: FilterRecord) -> str:
    """Return which plugin rejected the most nodes and why, and how many are left for others."""
    rejecting = sorted((each for each in record.plugins if each.rejected), key=_rejected)
    if not rejecting:
        return f"none of the {record.nodes} nodes is known to Moorage"
    first = rejecting[-1]
    reason = max(first.reasons, key=lambda each: each.nodes, default=None)
    others = sum(each.rejected for each in rejecting[:-1])
    return (
        f"{first.plugin} rejected {first.rejected} of {record.nodes}"
        f"{f': {reason.reason}' if reason else ''}"
        f"{f' (other plugins {others})' if others else ''}"
    )


def _rejected(plugin: PluginRecord) -> int:
    return plugin.rejected
