"""The replica's picture of the cluster; sessions write it, cycles read it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.errors import TooManyNodesError
from moorage.models import NodeManifest, Pod
from moorage.models.requests import Demands, demands_of
from moorage.snapshot.columns.encoded import EncodedColumn, EncodedColumns, resized
from moorage.snapshot.columns.inverted import DiskIndex, ImageIndex, PortIndex
from moorage.snapshot.columns.pods import PodIndex
from moorage.snapshot.columns.resources import ResourceColumns
from moorage.snapshot.node import Node
from moorage.snapshot.nodes import Nodes
from moorage.snapshot.objects import ObjectStore
from moorage.snapshot.placements import Placements

FIRST_CAPACITY = 64

MAX_NODES = 131_072
"""The rows that a snapshot has at most, unless it is made with another limit."""

ONE_POD: Mapping[str, int] = {"pods": 1}

_AS_IT_IS = nullcontext()


class Snapshot:
    """Nodes by row with the pods on them, in columns that are kept up change by change.

    Any sequence of changes leaves the same picture as building it at once from the final state.

    Attributes:
        node_table: The node of each row; None where there is none.
    """

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        """Start empty, with room for *max_nodes* rows in the end."""
        self.max_nodes = max_nodes
        self.allocatable = ResourceColumns(FIRST_CAPACITY)
        self.requested = ResourceColumns(FIRST_CAPACITY)
        self.nonzero_requested = ResourceColumns(FIRST_CAPACITY)
        self.images = ImageIndex()
        self.ports = PortIndex()
        self.disks = DiskIndex()
        self.pods = PodIndex()
        self.objects = ObjectStore()
        self.placements = Placements()
        self.capacity = FIRST_CAPACITY
        self._present = np.zeros(FIRST_CAPACITY, np.bool_)
        self.node_table: list[Node | None] = [None] * FIRST_CAPACITY
        self._pods: list[dict[str, Pod]] = [{} for _ in range(FIRST_CAPACITY)]
        self._row_of: dict[str, int] = {}
        self._encoded: EncodedColumns[NodeManifest] = EncodedColumns()

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def pod_count(self) -> int:
        """The number of pods on all nodes."""
        return len(self.pods)

    def set_node(self, row: int, manifest: NodeManifest) -> None:
        """Put a new or changed node into *row*; the pods of the same node stay.

        Raises:
            QuantityError: An allocatable amount is not a quantity; nothing has changed.
            TooManyNodesError: The row is beyond the limit; nothing has changed.
        """
        manifest.allocatable  # noqa: B018 - raises before anything has changed
        if row >= self.capacity:
            self._reserve(row)
        old, name = self.node_table[row], manifest.metadata.name
        if old is not None and old.manifest.metadata.name != name:
            self.remove_row(row)
            old = None
        self._present[row] = True
        self.node_table[row] = Node(self, row, manifest, old.requested if old else None)
        self._row_of[name] = row
        before = () if old is None else old.manifest.status.images
        if old is None or old.manifest.allocatable != manifest.allocatable:
            if old is not None:
                self.allocatable.add(row, old.manifest.allocatable, -1)
            self.allocatable.add(row, manifest.allocatable)
        if before != manifest.status.images:
            self.images.remove(row, before)
            self.images.add(row, manifest.status.images)
        self._encoded.set(row, manifest)

    def remove_row(self, row: int) -> None:
        """Forget the node of *row* and the pods on it, if there is one."""
        node = self.node_at(row)
        if node is None:
            return
        for uid in list(self._pods[row]):
            self.remove_pod(uid)
        self._present[row] = False
        self.node_table[row] = None
        if self._row_of.get(node.name) == row:  # else it has moved to another row already
            del self._row_of[node.name]
        self.allocatable.add(row, node.allocatable, -1)
        self.images.remove(row, node.images)
        self._encoded.set(row, None)

    def check_names(self) -> None:
        """Find nodes of one name in several rows, as there may be while one moves.

        Raises:
            ValueError: There are some.
        """
        count = np.count_nonzero(self._present)
        if count != len(self._row_of):
            raise ValueError(f"{count} rows have nodes, of only {len(self._row_of)} names")

    def place_pod(self, row: int, pod: Pod, *, since: float | None = None) -> None:
        """Put a new, changed or moved pod onto the node of *row*.

        Args:
            row: The row.
            pod: The pod.
            since: When it came there, on the clock of `placements`: by default now, unless it is
                there already.

        Raises:
            KeyError: There is no node in *row*.
            QuantityError: A request is not a quantity; nothing has changed.
        """
        resized = pod.status.counted is not None
        demands = pod.demands if resized else demands_of(pod.spec)  # raises before any change
        if row >= self.capacity or self.node_table[row] is None:
            raise KeyError(f"no node in row {row} for pod {pod.namespace}/{pod.name}")
        uid = pod.metadata.uid
        before = self.pods.row_of(uid)
        if since is None:
            since = self.placements.time_of(uid) if before == row else self.placements.now()
        if before is not None:
            self.remove_pod(uid)
        self._account(row, pod, demands, 1)
        self.pods.add(row, pod)
        self.placements.add(row, pod, since)
        self._pods[row][uid] = pod

    def remove_pod(self, uid: str) -> None:
        """Take a pod off its node, if it is on one."""
        row = self.pods.remove(uid)
        if row is None:
            return
        self.placements.remove(uid)
        pod = self._pods[row].pop(uid)
        resized = pod.status.counted is not None
        self._account(row, pod, pod.demands if resized else demands_of(pod.spec), -1)

    def nodes(self, rows: npt.NDArray[np.intp] | None = None) -> Nodes:
        """Select the nodes of *rows*, or all in the order of rows."""
        return Nodes(self, np.flatnonzero(self._present) if rows is None else rows)

    def rows_of(self, candidates: bytes) -> npt.NDArray[np.intp]:
        """Read a bitmap over rows; rows without a node are left out."""
        packed = np.frombuffer(candidates, np.uint8)
        bits = np.unpackbits(packed, bitorder="little", count=min(8 * len(packed), self.capacity))
        chosen = bits.view(np.bool_)
        chosen &= self._present[: len(chosen)]
        return chosen.nonzero()[0]

    def row_of(self, name: str) -> int | None:
        """Return the row of the node called *name*."""
        return self._row_of.get(name)

    def node_at(self, row: int) -> Node | None:
        """Return the node of *row*."""
        return self.node_table[row] if row < self.capacity else None

    def pods_at(self, row: int) -> Iterable[Pod]:
        """Return the pods on the node of *row*."""
        return self._pods[row].values()

    def encoded(
        self, key: Hashable, read: Callable[[NodeManifest], Hashable | None]
    ) -> EncodedColumn[NodeManifest, Any]:
        """Return the column that *read* makes of the nodes, kept up from the first use on."""
        return self._encoded.get(key, read, self._manifests(), len(self), self.capacity)

    def overlaid(
        self,
        overrides: Mapping[int, NodeManifest],
        excluded_pods: Iterable[str],
        added_pods: Sequence[tuple[int, Pod]] = (),
    ) -> AbstractContextManager[None]:
        """Show other nodes, leave out pods and add some, for as long as the context lasts.

        Pods that are on a node already are not added to another one. Rows beyond the table are
        added for that time only.

        Raises:
            TooManyNodesError: A row is beyond the limit plus len(overrides).
        """
        places = {uid: row for uid in excluded_pods if (row := self.pods.row_of(uid)) is not None}
        if not overrides and not places and not added_pods:
            return _AS_IT_IS
        return self._overlaid(overrides, places, added_pods)

    @contextmanager
    def _overlaid(
        self,
        overrides: Mapping[int, NodeManifest],
        places: Mapping[str, int],
        added_pods: Sequence[tuple[int, Pod]],
    ) -> Iterator[None]:
        pods = [(row, self._pods[row][uid]) for uid, row in places.items()]
        before = {row: self.node_at(row) for row in overrides}
        for row, node in before.items():
            if node is not None and node.name != overrides[row].name:
                pods += [(row, pod) for pod in node.pods if pod.uid not in places]
        times = {pod.uid: self.placements.time_of(pod.uid) for _, pod in pods}
        capacity, needed = self.capacity, max(overrides, default=-1) + 1
        if needed > capacity:
            self._check(needed - 1, max(self.max_nodes, capacity) + len(overrides))
            self._resize(needed)
        added = [(row, pod) for row, pod in added_pods if self.pods.row_of(pod.uid) is None]
        try:
            for uid in places:
                self.remove_pod(uid)
            for row, manifest in overrides.items():
                self.set_node(row, manifest)
            for row, pod in added:
                self.place_pod(row, pod)
            yield
        finally:
            for _, pod in added:
                self.remove_pod(pod.uid)
            for row, node in before.items():
                self.remove_row(row) if node is None else self.set_node(row, node.manifest)
            for row, pod in pods:
                self.place_pod(row, pod, since=times[pod.uid])
            if self.capacity != capacity:
                self._resize(capacity)

    def _manifests(self) -> Iterator[tuple[int, NodeManifest]]:
        return ((node.row, node.manifest) for node in self.node_table if node is not None)

    def _account(self, row: int, pod: Pod, demands: Demands, sign: int) -> None:
        """Add to what the pods on a node use, or take away with a *sign* of -1."""
        self.requested.add(row, demands.requests, sign)
        self.requested.add(row, ONE_POD, sign)
        self.nonzero_requested.add(row, demands.nonzero_requests, sign)
        if demands.host_ports:
            change_ports = self.ports.add if sign > 0 else self.ports.remove
            change_ports(row, demands.host_ports)
        if pod.spec.volumes:
            change_disks = self.disks.add if sign > 0 else self.disks.remove
            change_disks(row, pod.disks)
        node = self.node_table[row]
        if node is not None:
            node.pods_changed(demands.requests)
            node.pods_changed(ONE_POD)

    def _reserve(self, row: int) -> None:
        self._check(row, self.max_nodes)
        self._resize(min(max(2 * self.capacity, row + 1), self.max_nodes))

    def _check(self, row: int, limit: int) -> None:
        if row >= limit:
            raise TooManyNodesError(f"row {row} is beyond the limit of {limit} nodes")

    def _resize(self, capacity: int) -> None:
        grown = capacity - self.capacity
        self._present = resized(self._present, capacity)
        del self.node_table[capacity:], self._pods[capacity:]
        self.node_table.extend([None] * grown)
        self._pods.extend({} for _ in range(grown))
        for columns in (self.allocatable, self.requested, self.nonzero_requested):
            columns.resize(capacity)
        self._encoded.resize(capacity)
        self.capacity = capacity


def snapshot_of(nodes: Nodes) -> Snapshot:
    """Return the snapshot that *nodes* are of; for trials, which put pods onto it for a while."""
    snapshot = nodes._snapshot
    assert isinstance(snapshot, Snapshot)  # noqa: S101 - there is no other kind
    return snapshot
