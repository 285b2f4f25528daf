"""Keeps the newest attempt on each pod, as the process serves it: why a pod is where it is."""

from collections import Counter, OrderedDict, defaultdict
from typing import Any, TypeAlias

import numpy as np

from moorage_host.kube_scheduler.attempt import EXTENDER, SchedulingAttempt

KEPT = 4096  # decisions

Decisions: TypeAlias = OrderedDict[tuple[str, str], dict[str, Any]]
"""The newest attempt on each pod, as `GET /decisions/NAMESPACE/POD` shows it."""


def keep(decisions: Decisions, attempt: SchedulingAttempt, node: str) -> None:
    """Record an attempt, the oldest make room; *node* is empty if it found none."""
    pod = attempt.pod.pod
    key = (pod.namespace, pod.name)
    decisions[key] = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "uid": pod.uid,
        "node": node,
        "nodes": attempt.nodes,
        "rejected": _rejected(attempt, is_placed=bool(node)),
        "offered": attempt.offered,
        "accepted": attempt.accepted,
        "feasible": attempt.feasible,
        "nominated": attempt.nominated,
        "scores": _scores(attempt, node) if node and attempt.names else None,
    }
    decisions.move_to_end(key)
    if len(decisions) > KEPT:
        decisions.popitem(last=False)


def _rejected(attempt: SchedulingAttempt, *, is_placed: bool) -> list[dict[str, Any]]:
    """Return how many nodes each in-tree plugin rejected, and how many for each reason."""
    nodes: Counter[str] = Counter()
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in attempt.rejections.values():
        if each.plugin != EXTENDER:
            nodes[each.plugin] += 1
            reasons[each.plugin].update(each.reasons)
    left = attempt.nodes - len(attempt.rejections)
    # Without a node for the pod, no node outside of those that it names was looked at.
    if (reason := attempt.conflict or attempt.elsewhere) and left and not is_placed:
        nodes["NodeAffinity"] += left
        reasons["NodeAffinity"][reason] += left
    return [
        {"plugin": plugin, "nodes": count, "reasons": dict(reasons[plugin])}
        for plugin, count in nodes.most_common()
    ]


def _scores(attempt: SchedulingAttempt, node: str) -> dict[str, Any]:
    """Return why the chosen node was the best.

    Beside it stand the best of the others, the node with the most points of the extenders if that
    is another, and how many other nodes have as many points in total.
    """
    chosen, extended, points = attempt.names.index(node), attempt.extender_points, attempt.points
    others = points.copy()
    others[chosen] = np.iinfo(np.int64).min
    preferred = None
    if extended is not None and extended[chosen] < extended.max():
        preferred = _points_of(attempt, int(extended.argmax()))
    return {
        "chosen": _points_of(attempt, chosen),
        "runnerUp": _points_of(attempt, int(others.argmax())),
        "preferred": preferred,
        "equals": int(np.count_nonzero(points == points[chosen])) - 1,
    }


def _points_of(attempt: SchedulingAttempt, position: int) -> dict[str, Any]:
    extended = attempt.extender_points
    return {
        "node": attempt.names[position],
        "inTree": int(attempt.in_tree_points[position]),
        "plugins": [
            {"plugin": each.plugin, "score": int(each.normalized[position]), "weight": each.weight}
            for each in attempt.in_tree
        ],
        "extenders": None if extended is None else int(extended[position]),
    }
