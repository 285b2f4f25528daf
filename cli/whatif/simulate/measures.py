"""How pods are spread over nodes: utilisation, balance and packing, by resource."""

from collections.abc import Iterable

import msgspec
import numpy as np

from cli.whatif.simulate.reading import MIRROR
from moorage import Nodes, Pod
from moorage.snapshot import Snapshot

ALWAYS = ("cpu", "memory", "pods")
"""Resources that are measured in any case; others if a pod asks for them."""


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of a resource is requested.

    Attributes:
        nodes: How many nodes have the resource.
        used: The share of the cluster that is requested, 0..1.
        mean: The mean over nodes of their shares.
        std_dev: Their standard deviation: 0 if all are equally full.
        largest_free: The largest free amount on one node.
        free: The free amount on all nodes.
    """

    nodes: int
    used: float
    mean: float
    std_dev: float
    largest_free: int
    free: int


class Measures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a cluster looks like.

    Attributes:
        nodes: How many nodes there are.
        nodes_used: How many have a pod that is not of a DaemonSet.
        nodes_free: How many have none.
        resources: The use of each resource.
    """

    nodes: int
    nodes_used: int
    nodes_free: int
    resources: dict[str, ResourceUse]


def resources_of(snapshot: Snapshot, others: Iterable[str] = ()) -> list[str]:
    """Return the resources to measure: the usual ones, those of pods, and those of *others*."""
    asked = {name for row in snapshot.nodes().rows for name in _asked(snapshot, int(row))}
    return list(dict.fromkeys((*ALWAYS, *sorted(asked), *sorted(others))))


def measure(snapshot: Snapshot, resources: Iterable[str]) -> Measures:
    """Return what the cluster looks like now."""
    nodes = snapshot.nodes()
    used = sum(any(not _stays(pod) for pod in node.pods) for node in nodes)
    return Measures(
        nodes=len(nodes),
        nodes_used=used,
        nodes_free=len(nodes) - used,
        resources={name: use for name in resources if (use := _use(nodes, name))},
    )


def _use(nodes: Nodes, resource: str) -> ResourceUse | None:
    """Return the use of a resource; None if no node has it."""
    allocatable, requested = nodes.allocatable(resource), nodes.requested(resource)
    has = allocatable > 0
    if not has.any():
        return None
    free = np.maximum(allocatable - requested, 0)
    shares = requested[has] / allocatable[has]
    return ResourceUse(
        nodes=int(has.sum()),
        used=float(requested[has].sum() / allocatable.sum()),
        mean=float(shares.mean()),
        std_dev=float(shares.std()),
        largest_free=int(free.max()),
        free=int(free.sum()),
    )


def _asked(snapshot: Snapshot, row: int) -> Iterable[str]:
    return (
        name for pod in snapshot.pods_at(row) for name, amount in pod.requests.items() if amount
    )


def _stays(pod: Pod) -> bool:
    """Whether a pod says nothing about whether its node is needed: each node has one of them."""
    return (pod.owner is not None and pod.owner.kind in ("DaemonSet", "Node")) or (
        MIRROR in pod.annotations
    )
