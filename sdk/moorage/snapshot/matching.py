"""Evaluates node selector terms on columns, with the rules of `moorage.rules`."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

from moorage.models import NodeManifest, NodeSelectorTerm, Pod, Requirement
from moorage.rules import matches_requirement
from moorage.snapshot.columns.encoded import Encoded, match_requirement
from moorage.snapshot.verdicts import Mask

NAME_FIELD = "metadata.name"
"""The only field that terms know."""


class LabelledNodes(Protocol):
    """The columns of a selection of nodes that terms are about."""

    def __len__(self) -> int: ...

    def label(self, key: str) -> Encoded[str]:
        """Return the values of a label; None for nodes that lack it."""

    def encoded(
        self, key: Hashable, read: Callable[[NodeManifest], Hashable | None]
    ) -> Encoded[Any]:
        """Return what *read* makes of each node."""


def match_term(nodes: LabelledNodes, term: NodeSelectorTerm) -> Mask:
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


def match_required(nodes: LabelledNodes, pod: Pod) -> Mask:
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


def _match_field(nodes: LabelledNodes, requirement: Requirement) -> Mask:
    if requirement.key != NAME_FIELD:
        return np.full(len(nodes), matches_requirement(requirement, {}))
    return match_requirement(nodes.encoded(("field", NAME_FIELD), _name), requirement)


def _name(node: NodeManifest) -> str:
    return node.name
