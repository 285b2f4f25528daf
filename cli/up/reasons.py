"""Explains in one line why a pod is where it is: what in-tree plugins decided, and what Moorage.

kube-scheduler's stand-in knows the in-tree part and the sum of Moorage's; the gateway knows which
of Moorage's plugins it came from.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cli.up.following import Outcome, PodState

BEST_SCORES = 3
"""How many scores of each side are shown."""

Decision = Mapping[str, Any]


def why(pod: PodState, scheduler: Decision | None, gateway: Decision | None) -> str:
    """Return the reason for a pod's place, or for its having none.

    Args:
        pod: How far it is.
        scheduler: The stand-in's newest decision, if it has one.
        gateway: The newest attempt that the gateway keeps, if any.
    """
    if pod.outcome is Outcome.DELETED:
        return "it was deleted, by somebody or to make room for a more important pod"
    known = scheduler if scheduler and scheduler["uid"] == pod.uid else None
    if not pod.node:
        return _pending(pod, known, gateway or {})
    if known is None or known["node"] != pod.node:
        return "kube-scheduler no longer has the decision"
    asked = (gateway or {}) if known["offered"] or known["scores"] else {}
    reason = _scores(known, asked, pod.node) if known["scores"] else _only(known, asked)
    return "; ".join([reason, *_failures(asked)])


def _pending(pod: PodState, scheduler: Decision | None, gateway: Decision) -> str:
    problem = pod.problem or "not tried yet"
    if pod.outcome is not Outcome.UNSCHEDULABLE or scheduler is None or scheduler["node"]:
        return problem
    rejections = list(_rejections(scheduler, gateway))
    if not scheduler["offered"]:
        rejections.append("Moorage was not asked")
    return f"{', '.join(rejections)}: {problem}"


def _only(scheduler: Decision, gateway: Decision) -> str:
    if scheduler["nominated"]:
        return "the node where preemption made room for it"
    if scheduler["nodes"] == 1:
        return "the only node"
    return ": ".join(["the only feasible node", ", ".join(_rejections(scheduler, gateway))])


def _rejections(scheduler: Decision, gateway: Decision) -> Iterator[str]:
    for plugin, nodes in sorted(scheduler["rejected"].items(), key=lambda entry: -entry[1]):
        yield f"in-tree {plugin} rejected {nodes}"
    total = scheduler["offered"] - scheduler["accepted"]
    plugins = (gateway.get("filter") or {}).get("plugins") or ()
    rejected = {plugin["plugin"]: plugin.get("rejected", 0) for plugin in plugins}
    if total and sum(rejected.values()) == total:
        yield from (f"Moorage {name} rejected {nodes}" for name, nodes in rejected.items() if nodes)
    elif total:
        yield f"Moorage rejected {total}"


def _scores(scheduler: Decision, gateway: Decision, node: str) -> str:
    scores = scheduler["scores"]
    in_tree = _best((p["plugin"], p["score"], p["weight"]) for p in scores["plugins"])
    reason = f"in-tree {scores['inTree']}{in_tree}"
    if scores["extenders"] is None:
        reason += ", Moorage has no opinion"
    else:
        reason += f" + Moorage {scores['extenders']}{_moorage(gateway, node)}"
    rejections = ", ".join(_rejections(scheduler, gateway))
    return "; ".join([reason, *([rejections] if rejections else []), *_rivals(scores, node)])


def _moorage(gateway: Decision, node: str) -> str:
    top = (gateway.get("score") or {}).get("top") or ()
    chosen: Decision = next((entry for entry in top if entry["node"] == node), {})
    plugins = chosen.get("plugins") or ()
    return _best((p["plugin"], p["normalized"], p["weight"]) for p in plugins)


def _best(scores: Iterator[tuple[str, float, int]]) -> str:
    ranked = sorted(scores, key=lambda score: -score[1] * score[2])[:BEST_SCORES]
    parts = [
        f"{plugin} {score:.0f}" + (f" x{weight}" if weight > 1 else "")
        for plugin, score, weight in ranked
        if score
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _rivals(scores: Decision, node: str) -> Iterator[str]:
    for side, best in (("in-tree", scores["inTreeBest"]), ("Moorage", scores["extendersBest"])):
        if best not in ("", node):
            yield f"{side} alone prefers {best}"
    if equals := scores["equals"]:
        yield f"{equals} other node{'s have' if equals > 1 else ' has'} as many points"


def _failures(gateway: Decision) -> Iterator[str]:
    """Yield what went wrong in Moorage although the pod found a node."""
    for phase in ("filter", "score"):
        for plugin in (gateway.get(phase) or {}).get("plugins") or ():
            if failure := plugin.get("failure"):
                yield f"{plugin['plugin']} failed: {failure}"
    if error := gateway.get("scoreError"):
        yield f"no scores: {error}"
