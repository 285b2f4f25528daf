"""Evaluates one condition of a label selector on a column of label values."""

from typing import Any

from moorage.models import Requirement
from moorage.rules import matches_requirement
from moorage.snapshot.columns.encoded import Encoded
from moorage.snapshot.verdicts import Mask


def match_requirement(column: Encoded[Any], requirement: Requirement) -> Mask:
    """Return where the values of a label meet a condition on it.

    Raises:
        ValueError: The operator does not exist.
    """
    match requirement.operator:
        case "In":
            return column.isin(requirement.values)
        case "NotIn":
            return ~column.isin(requirement.values)
        case "Exists":
            return ~column.isin((None,))
        case "DoesNotExist":
            return column.isin((None,))
    return column.where(lambda value: _matches(requirement, value))


def _matches(requirement: Requirement, value: str | None) -> bool:
    return matches_requirement(requirement, {} if value is None else {requirement.key: value})
