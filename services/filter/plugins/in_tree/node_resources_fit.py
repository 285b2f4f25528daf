"""Keeps pods off nodes that are full, like the filter of kube-scheduler's NodeResourcesFit."""

import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from moorage import Amounts, Arguments, FilterPlugin, Mask, Nodes, Pod, Rejection, Scope, Verdicts
from moorage.plugin.pod_fields import REQUEST_FIELDS

TOO_MANY_PODS = "Too many pods"

NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Kubernetes' own resources, in the order in which kube-scheduler lists what is short."""


Positions = npt.NDArray[np.intp]


class NodeResourcesFit(FilterPlugin):
    """Keeps pods off nodes that lack the resources they request."""

    depends_on = Scope.NODE
    pod_fields = REQUEST_FIELDS

    class Args(Arguments):
        """Which extended resources not to look at: by name, or by what precedes the slash."""

        ignored_resources: tuple[str, ...] = ()
        ignored_resource_groups: tuple[str, ...] = ()

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes by everything that is short there.

        It is unresolvable if a request exceeds what the node could offer were it empty.
        """
        verdicts = nodes.verdicts()
        texts = [TOO_MANY_PODS]
        shortages = [nodes.requested("pods") >= nodes.allocatable("pods")]
        offers: list[tuple[int, Amounts]] = []
        for resource, amount in self._wanted(pod):
            allocatable = nodes.allocatable(resource)
            texts.append(f"Insufficient {resource}")
            shortages.append(amount > allocatable - nodes.requested(resource))
            offers.append((amount, allocatable))
        for pattern, concerned in _patterns(shortages):
            reason = ", ".join(t for t, short in zip(texts, pattern, strict=True) if short)
            hopeless = np.zeros(len(concerned), np.bool_)
            for amount, allocatable in offers:
                hopeless |= amount > allocatable[concerned]
            for (unresolvable,), positions in _split((), concerned, hopeless):
                verdicts.reject_at(positions, Rejection(reason, unresolvable=unresolvable))
        return verdicts

    def _wanted(self, pod: Pod) -> list[tuple[str, int]]:
        wanted = [(r, a) for r, a in pod.requests.items() if a > 0 and not self._ignores(r)]
        return sorted(wanted, key=_order)

    def _ignores(self, resource: str) -> bool:
        if "/" not in resource or "kubernetes.io/" in resource:
            return False
        group = resource.partition("/")[0]
        return resource in self.args.ignored_resources or group in self.args.ignored_resource_groups


def _order(request: tuple[str, int]) -> tuple[int, str]:
    resource = request[0]
    return (NATIVE.index(resource) if resource in NATIVE else len(NATIVE), resource)


def _patterns(masks: list[Mask]) -> list[tuple[tuple[bool, ...], Positions]]:
    """Return each combination of the masks that some node has, if any is true, with its nodes."""
    concerned = functools.reduce(np.logical_or, masks).nonzero()[0]
    found: list[tuple[tuple[bool, ...], Positions]] = [((), concerned)] if len(concerned) else []
    for mask in masks:
        found = [each for pattern, nodes in found for each in _split(pattern, nodes, mask[nodes])]
    return found


def _split(
    pattern: tuple[bool, ...], nodes: Positions, chosen: Mask
) -> Iterator[tuple[tuple[bool, ...], Positions]]:
    """Tell nodes with a pattern so far apart by whether they are chosen."""
    count = np.count_nonzero(chosen)
    if count in (0, len(nodes)):
        yield (*pattern, bool(count)), nodes
    else:
        yield (*pattern, False), nodes[~chosen]
        yield (*pattern, True), nodes[chosen]
