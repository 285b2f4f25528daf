"""Keeps pods off nodes that are full, like the filter of kube-scheduler's NodeResourcesFit."""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moorage import (
    DEVICE_CLASSES,
    Arguments,
    FilterPlugin,
    Mask,
    Nodes,
    Pod,
    Rejection,
    Scope,
    Verdicts,
)
from moorage.errors import UnknownNameError
from moorage.in_tree.shared import NATIVE
from moorage.plugin.pod_fields import REQUEST_FIELDS
from moorage.rules.device_classes import PREFIX, DeviceClass, backed_resources

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient "

MANY = 100
"""Requested resources from which on masks share arrays; those of 24,000 would take 240 MB."""

Positions = npt.NDArray[np.intp]


class NodeResourcesFit(FilterPlugin):
    """Keeps pods off nodes that lack the resources they request.

    A resource that a DeviceClass backs counts only where the node itself offers it. Elsewhere
    kube-scheduler's DynamicResources allocates the devices, and rejects the node if it cannot.
    """

    depends_on = Scope.MANIFESTS
    reads_placements = False  # kube-scheduler's own filter sees assumed pods
    reads = (DEVICE_CLASSES,)
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
        excesses: list[Mask] = []
        wanted = self._wanted(pod)
        many = len(wanted) > MANY
        uniform = [np.full(len(nodes), each) for each in (False, True)] if many else ()
        for resource, amount in wanted:
            allocatable = nodes.allocatable(resource)
            is_backed = "/" in resource and _is_backed(resource, nodes)
            counts = allocatable > 0 if is_backed else np.True_
            texts.append(f"{INSUFFICIENT}{resource}")
            short = (amount > allocatable - nodes.requested(resource)) & counts
            excess = (amount > allocatable) & counts
            if many:
                short, excess = _shared(short, uniform), _shared(excess, uniform)
            shortages.append(short)
            excesses.append(excess)
        full = functools.reduce(np.logical_or, shortages).nonzero()[0]
        for pattern, concerned in _patterns(shortages, full) if full.size else ():
            reason = ", ".join(t for t, short in zip(texts, pattern, strict=True) if short)
            hopeless = np.zeros(len(concerned), np.bool_)
            for excess in excesses:
                hopeless |= excess[concerned]
            for (unresolvable,), positions in _split((), concerned, hopeless):
                verdicts.reject_at(positions, Rejection(reason, unresolvable=unresolvable))
        return verdicts

    def _wanted(self, pod: Pod) -> list[tuple[str, int]]:
        """Return what counts, in the order in which kube-scheduler lists it."""
        requests = pod.requests
        wanted = [(name, requests[name]) for name in NATIVE if requests.get(name, 0) > 0]
        if len(wanted) < len(requests):
            others = sorted(requests.keys() - NATIVE)
            wanted += [(r, requests[r]) for r in others if requests[r] > 0 and not self._ignores(r)]
        return wanted

    def _ignores(self, resource: str) -> bool:
        if "/" not in resource or "kubernetes.io/" in resource:
            return False
        group = resource.partition("/")[0]
        return resource in self.args.ignored_resources or group in self.args.ignored_resource_groups


def _shared(mask: Mask, uniform: Sequence[Mask]) -> Mask:
    """Return one of *uniform* if it is the same: of thousands, nearly all are."""
    count = np.count_nonzero(mask)
    return uniform[bool(count)] if count in (0, len(mask)) else mask


def _is_backed(resource: str, nodes: Nodes) -> bool:
    """Whether a DeviceClass backs an extended resource; its name may say so by itself.

    Trials ask also where no plugin of the policy reads DeviceClasses.
    """
    try:
        classes = nodes.objects(DEVICE_CLASSES, DeviceClass)
    except UnknownNameError:
        return resource.startswith(PREFIX)
    return resource in classes.derived("resources", backed_resources)


def _patterns(masks: list[Mask], concerned: Positions) -> list[tuple[tuple[bool, ...], Positions]]:
    """Return each combination of the masks that some of the *concerned* nodes has, with these."""
    found: list[tuple[tuple[bool, ...], Positions]] = [((), concerned)]
    for mask in masks:
        found = [each for pattern, nodes in found for each in _split(pattern, nodes, mask[nodes])]
    return found


def _split(
    pattern: tuple[bool, ...], nodes: Positions, chosen: Mask
) -> Iterator[tuple[tuple[bool, ...], Positions]]:
    """Split the nodes with an equal pattern so far by whether they are chosen."""
    count = np.count_nonzero(chosen)
    if count in (0, len(nodes)):
        yield (*pattern, bool(count)), nodes
    else:
        yield (*pattern, False), nodes[~chosen]
        yield (*pattern, True), nodes[chosen]
