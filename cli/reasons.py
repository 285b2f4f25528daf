"""Says in one line why a pod is where it is, from the gateway's decision record."""

from collections.abc import Iterator
from typing import Any

from cli.following import Outcome, PodState

BEST_SCORES = 3
"""How many plugin scores are worth showing."""

Decision = dict[str, Any]


def why(pod: PodState, decision: Decision | None) -> str:
    """Return the reason for a pod's place, or for its having none.

    Args:
        pod: How far it is.
        decision: The newest attempt that the gateway remembers, if any.
    """
    if pod.outcome is Outcome.DELETED:
        return "it was deleted, by somebody or to make room for a more important pod"
    if not pod.node:
        return pod.problem or "not tried yet"
    if decision is None:
        return "the gateway does not remember the decision"
    reason = _scores(decision, pod.node) or _only_node(decision)
    return "; ".join([reason, *_failures(decision)])


def _scores(decision: Decision, node: str) -> str:
    top = (decision.get("score") or {}).get("top") or ()
    chosen = next((entry for entry in top if entry["node"] == node), None)
    if chosen is None:
        best = top[0] if top else None
        return f"kube-scheduler's own scores: ours were best on {best['node']}" if best else ""
    ranked = sorted(chosen.get("plugins") or (), key=lambda p: -p["normalized"] * p["weight"])
    parts = [
        f"{p['plugin']} {p['normalized']:.0f}" + (f" x{p['weight']}" if p["weight"] > 1 else "")
        for p in ranked[:BEST_SCORES]
    ]
    return f"score {chosen['total']:.1f}: " + ", ".join(parts)


def _only_node(decision: Decision) -> str:
    half = decision.get("filter") or {}
    rejections = [
        f"{plugin['plugin']} rejected {plugin['rejected']}"
        for plugin in half.get("plugins") or ()
        if plugin.get("rejected")
    ]
    if half.get("feasible") == 1:
        return "the only feasible node" + (": " + ", ".join(rejections) if rejections else "")
    return ", ".join(rejections) or "feasible, without scores"


def _failures(decision: Decision) -> Iterator[str]:
    """Tell what went wrong although the pod found a node."""
    for half in ("filter", "score"):
        for plugin in (decision.get(half) or {}).get("plugins") or ():
            if failure := plugin.get("failure"):
                yield f"{plugin['plugin']} failed: {failure}"
    if error := decision.get("scoreError"):
        yield f"no scores: {error}"
