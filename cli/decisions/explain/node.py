"""Answers why a pod is on one node, or why not."""

from cli.decisions.explain.sources import Facts
from cli.shared.gateway.finding import Object


def about_node(facts: Facts, node: str) -> str:
    """Return the rest of a sentence that begins with the pod's name."""
    place = facts.pod["spec"].get("nodeName") or ""
    view = next((each for each in facts.views if each["verdict"] != "unknown"), None)
    if view is None and not facts.attempts and (rejected := _not_named(facts)):
        return f"{_place(place, node)}: {rejected}"
    if view is None:
        why = facts.views[0].get("detail", "") if facts.views else facts.silence
        return f"{_place(place, node)}: nothing is known about {node}: {why}"
    return f"{_place(place, node)}: {_verdict(facts, view, node, place)}"


def _not_named(facts: Facts) -> str:
    """Return why kube-scheduler did not name a node, as far as its message has it.

    A pod that is unschedulable was tried on all nodes: so the node was rejected.
    """
    reasons = facts.rejections.in_tree
    if not reasons:
        return ""
    which = reasons[0] if len(reasons) == 1 else f"one of: {', '.join(reasons)}"
    return f"kube-scheduler rejected it before Moorage was asked: {which}"


def _place(place: str, node: str) -> str:
    if place == node:
        return f"is on {node}"
    return f"is not on {node} but on {place}" if place else f"is not on {node}"


def _verdict(facts: Facts, view: Object, node: str, place: str) -> str:
    if view["verdict"] == "rejected":
        evicting = "; evicting pods would not help" if view.get("unresolvable") else ""
        return f"{view['plugin']} rejected it: {view['reason']}{evicting}"
    if view["verdict"] == "not named":
        return _not_named(facts) or str(view["detail"])
    newest = next((each for each in facts.attempts if each.get("filter")), {})
    if place == node:
        return str(newest.get("reason", "it was feasible"))
    rank, score = view.get("rank", 0), view.get("score") or {}
    if rank == 1:
        return f"it is Moorage's best node, {score['total']:.4g}: {newest.get('reason', '')}"
    if rank:
        best, total = newest["score"]["top"][0], f"{score['total']:.4g}"
        if score["total"] == best["total"]:
            return f"its total is {total}, as that of {best['node']}: {newest.get('reason', '')}"
        return f"it is Moorage's number {rank}, {total}; {best['node']} has {best['total']:.4g}"
    if claim := newest.get("claim"):
        return f"it was feasible, but {claim['node']} was claimed for {', '.join(claim['plugins'])}"
    return f"it was feasible; {view.get('detail') or 'Moorage gave no scores'}"
