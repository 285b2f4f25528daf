"""Whether pods tolerate taints, by kube-scheduler's rules.

The taint plugins of the filter and scorer services call this, and so may anyone's.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from moorage.models.node import Taint
from moorage.models.pod_spec import Toleration
from moorage.units.integers import parse_int64

DO_NOT_SCHEDULE: Final = frozenset(("NoSchedule", "NoExecute"))
"""The effects that keep pods off a node."""

PREFER_NO_SCHEDULE: Final = frozenset(("PreferNoSchedule",))
"""The effect that only counts against a node."""

_CANONICAL: Final = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether the toleration covers the taint.

    An empty key or effect covers every key or effect. Exists takes any value, Equal the same one,
    Gt and Lt (Kubernetes 1.35) a taint whose value is a greater or smaller integer. An operator
    that does not exist tolerates nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal" | "":
            return toleration.value == taint.value
        case "Gt" | "Lt" as operator:
            return _compares(operator, taint.value, toleration.value)
    return False


def untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration covers, if there is one."""
    return next(_untolerated(taints, tolerations, effects), None) if taints else None


def count_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> int:
    """Count the taints with one of the effects that no toleration covers."""
    return sum(1 for _ in _untolerated(taints, tolerations, effects)) if taints else 0


def _untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Iterator[Taint]:
    for taint in taints:
        if taint.effect in effects and not any(tolerates(t, taint) for t in tolerations):
            yield taint


def _compares(operator: str, taint_value: str, bound_value: str) -> bool:
    # Unlike in selectors, Kubernetes wants these in their shortest form: no "+5", no "05".
    if not (_CANONICAL.fullmatch(taint_value) and _CANONICAL.fullmatch(bound_value)):
        return False
    number, bound = parse_int64(taint_value), parse_int64(bound_value)
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound
