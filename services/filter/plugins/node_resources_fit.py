"""Keeps pods off nodes that are full, like the filter of kube-scheduler's NodeResourcesFit."""

from collections.abc import Iterator

import numpy as np

from moorage import Arguments, FilterPlugin, Mask, Nodes, Pod, Rejection, Verdicts

TOO_MANY_PODS = "Too many pods"

NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Kubernetes' own resources, in the order in which kube-scheduler lists what is short."""


class NodeResourcesFit(FilterPlugin):
    """Keeps pods off nodes that lack the resources they request."""

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
        hopeless = np.zeros(len(nodes), np.bool_)
        for resource, amount in self._wanted(pod):
            allocatable = nodes.allocatable(resource)
            texts.append(f"Insufficient {resource}")
            shortages.append(amount > allocatable - nodes.requested(resource))
            hopeless |= amount > allocatable
        for pattern, mask in _patterns([hopeless, *shortages]):
            reason = ", ".join(t for t, short in zip(texts, pattern[1:], strict=True) if short)
            verdicts.reject(mask, Rejection(reason, unresolvable=pattern[0]))
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


def _patterns(masks: list[Mask]) -> Iterator[tuple[list[bool], Mask]]:
    """Yield each combination of the masks that some node has, if any is true, with its nodes."""
    table = np.stack(masks)
    concerned = np.flatnonzero(table.any(axis=0))
    if not len(concerned):
        return
    patterns, which = np.unique(table[:, concerned], axis=1, return_inverse=True)
    for index, pattern in enumerate(patterns.T.tolist()):
        mask = np.zeros(table.shape[1], np.bool_)
        mask[concerned[which == index]] = True
        yield pattern, mask
