"""Evaluates node selector terms on columns, with the rules of `moorage.rules`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.models import NodeManifest, NodeSelectorTerm, Pod, Requirement
from moorage.rules import matches_requirement
from moorage.snapshot.columns.encoded import Encoded
from moorage.snapshot.verdicts import Mask

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
        mask &= match_requirement(nodes.label(requirement.key), requirement)
    for requirement in term.match_fields:
        mask &= _match_field(nodes, requirement)
    return mask


def match_required(nodes: "Nodes", pod: Pod) -> Mask:
    """Return which nodes match the node selector and the required node affinity of *pod*.

    Raises:
        ValueError: A term has an operator that does not exist.
    """
    mask = np.ones(len(nodes), np.bool_)
    for key, value in pod.spec.node_selector.items():
        mask &= nodes.label(key).isin((value,))
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required is not None:
        terms = affinity.required.node_selector_terms
        mask &= np.any([np.zeros_like(mask), *(match_term(nodes, term) for term in terms)], axis=0)
    return mask


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


def _match_field(nodes: "Nodes", requirement: Requirement) -> Mask:
    if requirement.key != NAME_FIELD:
        return np.full(len(nodes), matches_requirement(requirement, {}))
    return match_requirement(nodes.encoded(("field", NAME_FIELD), _name), requirement)


def _matches(requirement: Requirement, value: str | None) -> bool:
    return matches_requirement(requirement, {} if value is None else {requirement.key: value})


def _name(node: NodeManifest) -> str:
    return node.name
