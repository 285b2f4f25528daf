"""Selectors as pods carry them, against labels, nodes and pods."""

import operator
from collections.abc import Callable, Mapping
from typing import Final

from moorage.models.base import LabelSelector, Requirement
from moorage.models.node import NodeManifest
from moorage.models.pod import Pod
from moorage.models.pod_spec import NodeSelector, NodeSelectorTerm, PodAffinityTerm
from moorage.units.integers import parse_int64

_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": operator.gt,
    "Lt": operator.lt,
}


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether the labels match. No selector matches nothing, an empty one everything.

    Raises:
        ValueError: The selector has an operator that does not exist.
    """
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        matches_requirement(requirement, labels) for requirement in selector.match_expressions
    )


def matches_requirement(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet one condition.

    NotIn is met where the key is absent. Gt and Lt compare 64-bit integers, and nothing that is not
    an integer meets them.

    Raises:
        ValueError: The operator does not exist.
    """
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as name:
            return _compares(_COMPARISONS[name], value, requirement.values)
    raise ValueError(
        f"key {requirement.key!r}: operator {requirement.operator!r} does not exist: "
        "use In, NotIn, Exists, DoesNotExist, Gt or Lt"
    )


def matches_node_selector(selector: NodeSelector, node: NodeManifest) -> bool:
    """Return whether one of the selector's terms matches the node; without terms, none does.

    Raises:
        ValueError: A term has an operator that does not exist.
    """
    return any(matches_node_selector_term(term, node) for term in selector.node_selector_terms)


def allows_node(pod: Pod, node: NodeManifest) -> bool:
    """Return whether the pod's nodeSelector and its required node affinity allow the node.

    An operator that does not exist allows none. `moorage.snapshot.matching` does the same for many
    nodes at once.
    """
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not affinity or affinity.required is None:
        return True
    try:
        return matches_node_selector(affinity.required, node)
    except ValueError:
        return False


def matches_node_selector_term(term: NodeSelectorTerm, node: NodeManifest) -> bool:
    """Return whether the node meets all conditions of the term; an empty term matches no node.

    The only field that `match_fields` knows is metadata.name.

    Raises:
        ValueError: The term has an operator that does not exist.
    """
    if not term.match_expressions and not term.match_fields:
        return False
    labels, fields = node.metadata.labels, {"metadata.name": node.name}
    return all(matches_requirement(r, labels) for r in term.match_expressions) and all(
        matches_requirement(r, fields) for r in term.match_fields
    )


def _compares(
    compare: Callable[[int, int], bool], value: str | None, bounds: tuple[str, ...]
) -> bool:
    if value is None or len(bounds) != 1:
        return False
    number, bound = parse_int64(value), parse_int64(bounds[0])
    return number is not None and bound is not None and compare(number, bound)


NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that every namespace has: its name. Others are not known, as no one watches them."""


def selects_pod(term: PodAffinityTerm, own_namespace: str, pod: Pod) -> bool:
    """Return whether a term of a pod in *own_namespace* means *pod*.

    Raises:
        ValueError: The label selector has an operator that does not exist, or the namespace
            selector reads another label than the namespace's name.
    """
    return selects_namespace(term, own_namespace, pod.namespace) and matches_labels(
        term.label_selector, pod.labels
    )


def selects_namespace(term: PodAffinityTerm, own_namespace: str, namespace: str) -> bool:
    """Return whether a term of a pod in *own_namespace* means the pods of *namespace*.

    A term without namespaces and namespace selector means its own, an empty selector all.

    Raises:
        ValueError: The namespace selector reads another label than the namespace's name.
    """
    selector = term.namespace_selector
    if selector is None:
        return namespace in (term.namespaces or (own_namespace,))
    requirements = selector.match_expressions
    for key in (*selector.match_labels, *(requirement.key for requirement in requirements)):
        if key != NAMESPACE_NAME:
            raise ValueError(
                f"namespaceSelector: the label {key!r} of namespaces is not known here: select "
                f"them by {NAMESPACE_NAME}, or list them in namespaces"
            )
    return namespace in term.namespaces or matches_labels(selector, {NAMESPACE_NAME: namespace})
