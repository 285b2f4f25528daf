"""A pod on a node: as the watch shows it, or as it will be once its bind is seen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from moorage.models import Pod
from moorage.models.base import NOTHING, read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A pod on a node, and whether the watch has shown it there or it is assumed or claimed."""

    pod: Pod
    state: Literal["bound", "assumed", "claimed"]


def requested(placements: Sequence[Placement]) -> dict[str, int]:
    """Return what the pods on a node request, and under "pods" how many they are."""
    amounts = {"pods": len(placements)}
    for each in placements:
        for resource, amount in each.pod.requests.items():
            amounts[resource] = amounts.get(resource, 0) + amount
    return amounts


class Assumption(Struct):
    """A pod as it will be on its node, until a time on the clock.

    Attributes:
        pod: The pod as the API server will show it once it is bound.
        expires: When it is too late.
        is_claim: Whether no bind has come yet.
        failure: The failed attempt that the pod showed when its claim was taken; None if none ends
            the claim, since no attempt on the pod has begun.
        annotations: Which of its annotations it gets by its bind.
    """

    pod: Pod
    expires: float = math.inf
    is_claim: bool = False
    failure: str | None = ""
    annotations: Mapping[str, str] = NOTHING


def placed(pod: Pod, node: str, annotations: Mapping[str, str] = NOTHING) -> Pod:
    """Return the pod as the API server will show it once it is bound."""
    there = replace(pod, spec=replace(pod.spec, node_name=node))
    if annotations:
        both = read_only({**pod.metadata.annotations, **annotations})
        there = replace(there, metadata=replace(pod.metadata, annotations=both))
    return there
