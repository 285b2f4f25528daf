"""Why a pod is on one node and not on another, and why it is on none."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from cli.whatif.simulate.moorage import InProcess
from sandbox.scheduler.cycle.decision import Attempt
from sandbox.scheduler.cycle.diagnosis import EXTENDER, Rejection

SHOWN = 3
"""Plugins that a sentence names, those that differ most."""

SMALLEST = 0.5
"""Points below which a difference is not shown."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why not the other node.

    Attributes:
        text: In words.
        plugin: Who rejected it, empty if nobody did.
        points: What each plugin adds to the lead of the chosen node, if both were scored.
    """

    text: str
    plugin: str = ""
    points: dict[str, float] = {}


def why_not(attempt: Attempt, moorage: InProcess, chosen: str, other: str) -> Reason:
    """Return why *chosen* was chosen and not *other*, which is empty if that is no node."""
    if not other:
        return Reason(text="a node fits here")
    if rejection := attempt.diagnosis.rejections.get(other):
        plugin, reason = _rejection(moorage, other, rejection)
        return Reason(text=f"{plugin} rejects {other}: {reason}", plugin=plugin)
    if claimants := moorage.claimants:
        text = f"claimed for {', '.join(claimants)}"
        points = _lead(moorage.parts(chosen), moorage.parts(other))
        return Reason(text=_with_points(text, points), points=points)
    if other not in attempt.names:
        return Reason(text=f"{other} was not in the sample of nodes")
    points = _lead(_parts(attempt, moorage, chosen), _parts(attempt, moorage, other))
    lead = int(attempt.points[attempt.names.index(chosen)])
    lead -= int(attempt.points[attempt.names.index(other)])
    if lead <= 0:
        return Reason(text=f"as many points as {other}: by lot", points=points)
    return Reason(text=_with_points(f"{lead} points ahead of {other}", points), points=points)


def why_pending(attempt: Attempt, moorage: InProcess) -> str:
    """Return why a pod fits nowhere: `2 Insufficient cpu (NodeResourcesFit)`, most nodes first."""
    diagnosis = attempt.diagnosis
    counts = Counter(
        _rejection(moorage, node, rejection) for node, rejection in diagnosis.rejections.items()
    )
    left = diagnosis.nodes - len(diagnosis.rejections)
    if left and (reason := diagnosis.conflict or diagnosis.elsewhere):
        counts["NodeAffinity", reason] += left
    reasons = ", ".join(
        f"{count} {reason} ({plugin})" for (plugin, reason), count in counts.most_common()
    )
    return f"0/{diagnosis.nodes} nodes: {reasons}"


def _rejection(moorage: InProcess, node: str, rejection: Rejection) -> tuple[str, str]:
    ours = moorage.rejected.get(node)
    if rejection.plugin == EXTENDER and ours is not None:
        return ours.plugin, ours.text
    return rejection.plugin, ", ".join(rejection.reasons)


def _parts(attempt: Attempt, moorage: InProcess, node: str) -> Mapping[str, float]:
    """Return the points of a node by plugin; those of in-tree plugins are marked."""
    position = attempt.names.index(node)
    in_tree = {
        f"in-tree {each.plugin}": float(each.weight * each.scores[position])
        for each in attempt.in_tree
    }
    return {**in_tree, **moorage.parts(node)}


def _lead(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: points - other.get(name, 0.0) for name, points in one.items()}


def _with_points(text: str, points: Mapping[str, float]) -> str:
    parts = ", ".join(_largest(points))
    return f"{text}: {parts}" if parts else text


def _largest(points: Mapping[str, float]) -> Iterator[str]:
    ranked = sorted(points.items(), key=lambda part: -abs(part[1]))
    for plugin, difference in ranked[:SHOWN]:
        if abs(difference) >= SMALLEST:
            yield f"{plugin} {difference:+.0f}"
