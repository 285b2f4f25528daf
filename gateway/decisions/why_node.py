"""Finds why a pod is on one node, or why not."""

from gateway.cycle.decision import Decision
from gateway.decisions.evidence import PodEvidence
from gateway.decisions.nodes import NodeView
from gateway.decisions.rejections import Rejections


def about(place: str, node: str) -> str:
    """Return whether the pod, which is on *place*, is on a node."""
    if place == node:
        return f"is on {node}"
    return f"is not on {node} but on {place}" if place else f"is not on {node}"


def on_node(known: PodEvidence, found: Rejections, place: str) -> str:
    """Return why the pod is on one node, or why not."""
    node = known.node
    view = next((each for each in known.views if each.verdict != "unknown"), None)
    if view is None or view.verdict == "not named":
        if place != node and (rejected := _not_named(known, found)):
            return rejected
        if view is None and place == node and known.attempts:
            return known.attempts[0].reason
        if view is None and (passed := _all_passed(known)):
            return passed
        why = view or next(iter(known.views), None)
        return why.detail if view and why else _unknown(known, why)
    if view.verdict == "rejected":
        evicting = "; evicting pods would not help" if view.unresolvable else ""
        without = "; it was placed without Moorage" if place == node else ""
        return f"{view.plugin} rejected it: {view.reason}{without or evicting}"
    return _feasible(known.filtered, view, is_chosen=place == node)


def _unknown(known: PodEvidence, view: NodeView | None) -> str:
    why = view.detail if view is not None else known.why_no_attempt
    return f"nothing is known about {known.node}: {why}"


def _all_passed(known: PodEvidence) -> str:
    """Return how a node fared on which no plugin was asked; "" if that is not known."""
    newest = known.filtered
    if newest is None or newest.filter is None or newest.filter.plugins:
        return ""
    if newest.filter.feasible < newest.cluster_nodes:
        return (
            f"kube-scheduler offered {newest.filter.nodes} of {newest.cluster_nodes} nodes, all of "
            "which Moorage let pass; whether this was one of them is not kept"
        )
    return f"it was feasible: {newest.reason}"


def _feasible(newest: Decision | None, view: NodeView, *, is_chosen: bool) -> str:
    reason = newest.reason if newest is not None else "it was feasible"
    if is_chosen or newest is None:
        return reason
    if view.rank and view.score is not None and newest.score is not None:
        best, total = newest.score.top[0], f"{view.score.total:.4g}"
        if view.score.total != best.total:
            return f"it is Moorage's number {view.rank}, {total}; {best.node} has {best.total:.4g}"
        if best.node == view.node and newest.score.best < 2:
            return f"it is Moorage's best node, {total}: {reason}"
        return f"it ties for Moorage's best total, {total}: {reason}"
    if newest.claim is not None:
        return f"it was feasible, and {newest.claim.node} was claimed: {reason}"
    return f"it was feasible; {view.detail or 'Moorage gave no scores'}"


def _not_named(known: PodEvidence, found: Rejections) -> str:
    """Return why kube-scheduler did not name a node, as far as its message has it.

    A pod that is unschedulable was tried on all nodes: so the node was rejected.
    """
    reasons = found.in_tree
    if not reasons:
        return ""
    which = reasons[0] if len(reasons) == 1 else f"one of: {', '.join(reasons)}"
    if known.lacks:
        which = ", ".join(known.lacks)
    return f"kube-scheduler rejected it before Moorage was asked: {which}"
