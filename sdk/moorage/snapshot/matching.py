"""Evaluates node selector terms on columns, with the rules of `moorage.selectors`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.models import NodeManifest, NodeSelectorTerm, Requirement
from moorage.selectors import matches_requirement
from moorage.snapshot.encoded import Encoded
from moorage.verdicts import Mask

if TYPE_CHECKING:
    from moorage.snapshot.nodes import Nodes

NAME_FIELD = "metadata.name"
"""The only field that terms know."""


def match_term(nodes: "Nodes", term: NodeSelectorTerm) -> Mask:
    """Return which nodes meet all conditions of *term*; an empty term matches no node.

    Raises:
        ValueError: The term has an operator that does not exist.
    """
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(nodes), np.bool_)
    mask = np.ones(len(nodes), np.bool_)
    for requirement in term.match_expressions:
        mask &= _match(nodes.label(requirement.key), requirement)
    for requirement in term.match_fields:
        mask &= _match_field(nodes, requirement)
    return mask


def _match_field(nodes: "Nodes", requirement: Requirement) -> Mask:
    if requirement.key != NAME_FIELD:
        return np.full(len(nodes), matches_requirement(requirement, {}))
    return _match(nodes.encoded(("field", NAME_FIELD), _name), requirement)


def _match(column: Encoded[Any], requirement: Requirement) -> Mask:
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


def _name(node: NodeManifest) -> str:
    return node.name
