"""Which pods the terms of pod affinities mean."""

from typing import Final

from moorage.models.constraints import PodAffinityTerm
from moorage.models.pod import Pod
from moorage.rules.nodes import matches_labels

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
