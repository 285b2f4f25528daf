"""A selection of a snapshot's nodes, as batch plugins see it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from moorage.models import (
    ContainerPort,
    Disk,
    NodeManifest,
    NodeSelectorTerm,
    ObjectKind,
    Pod,
    PodAffinityTerm,
    Taint,
)
from moorage.snapshot.columns.encoded import Encoded, EncodedColumn
from moorage.snapshot.columns.inverted import DiskIndex, ImageIndex, PortIndex
from moorage.snapshot.columns.pods import CarriedTerm, PodIndex
from moorage.snapshot.columns.resources import Amounts, ResourceColumns
from moorage.snapshot.matching import match_required, match_term
from moorage.snapshot.node import Node
from moorage.snapshot.objects import Objects, ObjectStore
from moorage.snapshot.placements import Placements
from moorage.snapshot.verdicts import Mask, Verdicts

T = TypeVar("T")

_NAME = attrgetter("manifest.metadata.name")


class SnapshotColumns(Protocol):
    """The columns of a snapshot, over rows."""

    allocatable: ResourceColumns
    requested: ResourceColumns
    nonzero_requested: ResourceColumns
    images: ImageIndex
    ports: PortIndex
    disks: DiskIndex
    pods: PodIndex
    objects: ObjectStore
    placements: Placements
    node_table: list[Node | None]
    capacity: int

    def __len__(self) -> int: ...

    def nodes(self) -> "Nodes":
        """Select all nodes."""

    def row_of(self, name: str) -> int | None:
        """Return the row of the node called *name*."""

    def encoded(
        self, key: Hashable, read: Callable[[NodeManifest], Hashable | None]
    ) -> EncodedColumn[NodeManifest, Any]:
        """Return the column that *read* makes of the nodes."""


class Nodes(Sequence[Node]):
    """Some nodes, in a fixed order; every array has one element for each of them, in that order.

    Valid for the cycle in which it was handed out.
    """

    def __init__(self, snapshot: SnapshotColumns, rows: npt.NDArray[np.intp]) -> None:
        self._snapshot = snapshot
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> "Nodes": ...
    def __getitem__(self, index: int | slice) -> "Node | Nodes":
        if isinstance(index, slice):
            return Nodes(self._snapshot, self.rows[index])
        return self._node(int(self.rows[index]))

    def __iter__(self) -> Iterator[Node]:
        nodes = list(map(self._snapshot.node_table.__getitem__, self.rows.tolist()))
        if not all(nodes):
            raise KeyError("a node of this selection is gone: it is valid in its cycle only")
        return iter(cast("list[Node]", nodes))

    @cached_property
    def names(self) -> list[str]:
        """The nodes' names."""
        return list(map(_NAME, self))

    def name(self, index: int) -> str:
        """Return one node's name: also after the cycle, if all names were read in it."""
        return self.names_at([index])[0]

    def names_at(self, indices: Iterable[int]) -> list[str]:
        """Return the names of the nodes at some places; see `name`."""
        read: list[str] | None = vars(self).get("names")
        if read is not None:
            return list(map(read.__getitem__, indices))
        nodes = map(self._snapshot.node_table.__getitem__, map(self.rows.item, indices))
        return list(map(_NAME, nodes))

    @property
    def cluster_size(self) -> int:
        """The number of nodes in the whole snapshot."""
        return len(self._snapshot)

    def get(self, name: str) -> Node | None:
        """Return the node of the cluster called *name*, whether it is among these or not."""
        row = self._snapshot.row_of(name)
        return None if row is None else self._snapshot.node_table[row]

    @property
    def cluster(self) -> "Nodes":
        """All nodes, whether other plugins rejected them or other replicas look at them."""
        return self._snapshot.nodes()

    def where(self, mask: Mask) -> "Nodes":
        """Select the nodes where *mask* is true."""
        return Nodes(self._snapshot, self.rows[mask])

    def verdicts(self) -> Verdicts:
        """Start with verdicts that let all of these nodes pass."""
        return Verdicts(self.rows.size)

    def allocatable(self, resource: str) -> Amounts:
        """Return what pods may use: millicores of "cpu", bytes or counts of everything else."""
        columns = self._snapshot.allocatable
        common = columns.common.get(resource)  # nearly always: most plugins ask for several
        return columns.select(resource, self.rows) if common is None else common.take(self.rows)

    def requested(self, resource: str) -> Amounts:
        """Return what the pods on the nodes ask for; "pods" counts them."""
        columns = self._snapshot.requested
        common = columns.common.get(resource)
        return columns.select(resource, self.rows) if common is None else common.take(self.rows)

    def nonzero_requested(self, resource: str) -> Amounts:
        """Return the same for "cpu" and "memory", with a minimum for idle containers.

        As in kube-scheduler a container that asks for none counts as 100 millicores and 200 MiB.
        """
        columns = self._snapshot.nonzero_requested
        common = columns.common.get(resource)
        return columns.select(resource, self.rows) if common is None else common.take(self.rows)

    def label(self, key: str) -> Encoded[str]:
        """Return the values of a label; None for nodes that lack it."""
        return self.encoded(("label", key), lambda node: node.metadata.labels.get(key))

    def annotation(self, key: str) -> Encoded[str]:
        """Return the values of an annotation; None for nodes that lack it."""
        return self.encoded(("annotation", key), lambda node: node.metadata.annotations.get(key))

    def taints(self) -> Encoded[tuple[Taint, ...]]:
        """Return the nodes' taints; None for nodes that have none."""
        return self.encoded("taints", lambda node: node.spec.taints or None)

    def unschedulable(self) -> Mask:
        """Return which nodes are cordoned."""
        return self.encoded("unschedulable", lambda node: node.spec.unschedulable).where(bool)

    def encoded(
        self, key: Hashable, read: Callable[[NodeManifest], Hashable | None]
    ) -> Encoded[Any]:
        """Return what *read* makes of each node, which is called again only when the node changes.

        Args:
            key: Names the property; the same key must always come with the same *read*.
            read: Returns a hashable value, None for nodes that lack the property.
        """
        return self._snapshot.encoded(key, read).select(self.rows)

    def matching(self, term: NodeSelectorTerm) -> Mask:
        """Return which nodes match a term of a node selector; none matches an empty term.

        Raises:
            ValueError: The term has an operator that does not exist.
        """
        return match_term(self, term)

    def required_by(self, pod: Pod) -> Mask:
        """Return which nodes match the node selector and the required node affinity of *pod*.

        Raises:
            ValueError: A term has an operator that does not exist.
        """
        return match_required(self, pod)

    def count_pods(
        self, terms: Iterable[PodAffinityTerm], namespace: str, *, terminating: bool = True
    ) -> Amounts:
        """Return how many pods on each node are meant by all of *terms*.

        Args:
            terms: What to look for; their topology keys do not matter.
            namespace: That of the pod to which the terms belong: theirs if they name none.
            terminating: Whether pods that are being deleted count.

        Raises:
            ValueError: A term has an operator that does not exist, or selects namespaces by other
                labels than their names.
        """
        pods, capacity = self._snapshot.pods, self._snapshot.capacity
        return pods.count(terms, namespace, capacity, terminating=terminating)[self.rows]

    def terms_about(self, pod: Pod) -> Mapping[CarriedTerm, Amounts]:
        """Return the terms of pods on the whole cluster's nodes that mean *pod*.

        Each comes with how many such terms the pods on each of these nodes carry.
        """
        carried = self._snapshot.pods.carrying(pod, self._snapshot.capacity)
        return {term: amounts[self.rows] for term, amounts in carried.items()}

    def newly_placed(
        self,
        key: Hashable,
        amount: Callable[[Pod], float],
        *,
        within: "float | npt.NDArray[np.float64]",
        fading: float = 0.0,
    ) -> npt.NDArray[np.float64]:
        """Return the total amount of the pods that came to each node recently, bound or assumed.

        What measurements of nodes have not seen yet. Times are those at which this replica heard of
        the pods; what is older than 30 minutes does not count.

        Args:
            key: Names the amount; the same key must always come with the same *amount*.
            amount: Returns a number for a pod, and is called again only when the pod changes.
            within: Pods placed less than so many seconds ago count in full; one number, or one
                for each node.
            fading: Seconds before that in which they count less, the older the less; 0 is none.
        """
        capacity = self._snapshot.capacity
        if isinstance(within, np.ndarray):
            by_row = np.zeros(capacity)
            by_row[self.rows] = within
            within = by_row
        totals = self._snapshot.placements.totals(
            key, amount, within=within, fading=fading, capacity=capacity
        )
        return totals[self.rows]

    def by_domain(self, topology_key: str, amounts: Amounts) -> Amounts:
        """Return for each node the total of its domain; 0 for nodes that lack the label.

        Args:
            topology_key: The label by whose values nodes form domains.
            amounts: What to add up, one for each node of `cluster`.
        """
        column = self.cluster.label(topology_key)
        totals = column.sums(np.where(column.isin((None,)), 0, amounts))
        return totals[self.label(topology_key).codes]

    def image_sizes(self, name: str) -> tuple[Amounts, int]:
        """Return an image's size in bytes, 0 where absent, and on how many nodes it is at all."""
        sizes, count = self._snapshot.images.sizes(name, self._snapshot.capacity)
        return sizes[self.rows], count

    def image_names(self, accepts: Callable[[str], bool]) -> Mask:
        """Return which nodes have an image with a name that *accepts* accepts.

        It is called once for each name in the cluster; images have several, with tag and digest.
        """
        return self._snapshot.images.named(accepts, self._snapshot.capacity)[self.rows]

    def port_conflicts(self, ports: Iterable[ContainerPort]) -> Mask:
        """Return which nodes have one of the host ports taken."""
        return self._snapshot.ports.conflicts(ports, self._snapshot.capacity)[self.rows]

    def disk_conflicts(self, disks: Iterable[Disk]) -> Mask:
        """Return which nodes have one of the disks mounted, unless all mounts are read-only."""
        return self._snapshot.disks.conflicts(disks, self._snapshot.capacity)[self.rows]

    @overload
    def objects(self, kind: ObjectKind) -> Objects[dict[str, Any]]: ...
    @overload
    def objects(self, kind: ObjectKind, model: type[T]) -> Objects[T]: ...
    def objects(self, kind: ObjectKind, model: type[Any] = dict) -> Objects[Any]:
        """Return the cluster's objects of a kind that the plugin names in `reads`.

        Args:
            kind: The kind.
            model: What to read the objects as: a `msgspec.Struct`, or by default plain dicts.

        Raises:
            UnknownNameError: The plugin does not name the kind in `reads`.
        """
        return self._snapshot.objects.select(kind, model)

    def position(self, name: str) -> int | None:
        """Return where in this selection the node called *name* stands."""
        row = self._snapshot.row_of(name)
        if row is None:
            return None
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None

    def _node(self, row: int) -> Node:
        node = self._snapshot.node_table[row]
        if node is None:
            raise KeyError(f"no node in row {row}")
        return node
