"""Scores utilisation by a curve, like NodeResourcesFit's strategy RequestedToCapacityRatio."""

from itertools import pairwise
from typing import Annotated

import numpy as np

from moorage import MAX_SCORE, Amounts, Arguments, Meta, Nodes, Pod, Scope, ScorePlugin, Scores
from moorage.in_tree.scores.resources import (
    CPU_AND_MEMORY,
    ResourceSpec,
    requested_with,
    that_count,
)
from moorage.plugin.pod_fields import REQUEST_FIELDS

MAX_POINT = 10
"""The highest score of a point of the shape."""


class ShapePoint(Arguments):
    """A point of the curve: the score of a resource at this utilization in percent."""

    utilization: Annotated[int, Meta(ge=0, le=100)]
    score: Annotated[int, Meta(ge=0, le=MAX_POINT)]


class RequestedToCapacityRatio(ScorePlugin):
    """Prefers nodes by how much of each resource is requested, on a curve of your own."""

    depends_on = Scope.NODE
    pod_fields = REQUEST_FIELDS

    class Args(Arguments):
        """The curve, and the resources to look at.

        Attributes:
            shape: Scores by utilization, which rises from point to point; straight between them.
                By default the fuller the better.
            resources: By default CPU and memory alike.
        """

        shape: Annotated[tuple[ShapePoint, ...], Meta(min_length=1)] = (
            ShapePoint(utilization=0, score=0),
            ShapePoint(utilization=100, score=MAX_POINT),
        )
        resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

        def __post_init__(self) -> None:
            if any(a.utilization >= b.utilization for a, b in pairwise(self.shape)):
                raise ValueError("the utilization of shape must rise from point to point")

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the mean by weight of the resources' scores that are not 0, rounded."""
        curve = _curve(self.args.shape)
        total = np.zeros(len(nodes), np.int64)
        weights = np.zeros(len(nodes), np.int64)
        for resource in that_count(self.args.resources, pod):
            allocatable = nodes.allocatable(resource.name)
            used = np.minimum(requested_with(resource.name, pod, nodes), allocatable)
            points = curve[used * 100 // np.maximum(allocatable, 1)] * (allocatable > 0)
            total += resource.weight * points
            weights += resource.weight * (points > 0)
        return np.floor(total / np.maximum(weights, 1) + 0.5)


def _curve(shape: tuple[ShapePoint, ...]) -> Amounts:
    """Return the score, 0..100, at each whole percent; rounded towards zero, as in Go."""
    curve = np.full(101, shape[-1].score * MAX_SCORE // MAX_POINT, np.int64)
    curve[: shape[0].utilization] = shape[0].score * MAX_SCORE // MAX_POINT
    for low, high in pairwise(shape):
        start = low.score * MAX_SCORE // MAX_POINT
        rise = high.score * MAX_SCORE // MAX_POINT - start
        steps = np.arange(high.utilization - low.utilization)
        slope = np.abs(rise) * steps // len(steps)
        curve[low.utilization : high.utilization] = start + np.sign(rise) * slope
    return curve
