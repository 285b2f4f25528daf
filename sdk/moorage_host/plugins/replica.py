"""A session's replica of the gateway's state, and how a cycle runs on it."""

import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from moorage.errors import NoStateError, TooManyObjectsError, UnknownNameError
from moorage.execution import Profile, Supervisor
from moorage.models import NodeManifest, ObjectKind, ObjectName, Pod, decode_node, decode_pod
from moorage.snapshot import Nodes, ObjectStore, Snapshot
from moorage.snapshot.placements import placed_at
from moorage.snapshot.snapshot import MAX_NODES
from moorage_host.plugins.host import Policy

Run = TypeVar("Run")

Engine = Callable[[Profile, Pod, Nodes, Supervisor], Awaitable[Run]]
"""Runs a profile's plugins for one pod; pure: no clock, no transport."""

MAX_PODS = 500_000
"""The pods that a session has at most, unless it is made with another limit."""

MAX_OBJECTS = 100_000
"""The objects of additional kinds that a session has at most, without another limit."""

STEP_SECONDS, NODE_SECONDS = 0.5, 0.0001
"""What the default time budget is worth in a small cluster, and for each of its nodes more, where
a plugin waits for nothing: so long everybody else waits."""

MAX_KINDS = 64
"""The additional kinds of objects that a session has at most."""


class CycleInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle looks at.

    Attributes:
        profile: The name of the profile.
        pod: The pod to place.
        candidates: The nodes as a bitmap over rows; empty if they come by name.
        names: The nodes by name; None with no `candidates` means all nodes.
        plugin: Run this plugin alone, if not empty.
        overrides: Nodes as the caller sees them in this cycle only, by row.
        given: The same of a caller that knows no rows: nodes that may be here or not.
        excluded_pods: UIDs of pods to leave out in this cycle only.
        added_pods: Pods that are on nodes in this cycle only, each with the row of its node.
        by_hand: Whether people ask, and no gateway.
    """

    profile: str
    pod: Pod
    candidates: bytes = b""
    names: tuple[str, ...] | None = None
    plugin: str = ""
    overrides: Mapping[int, NodeManifest] = msgspec.field(default_factory=dict)
    given: tuple[NodeManifest, ...] = ()
    excluded_pods: tuple[str, ...] = ()
    added_pods: Sequence[tuple[int, Pod]] = ()
    by_hand: bool = False


class Replica:
    """One session's snapshot, policy and generation.

    Attributes:
        step: What the default time budget is worth here, see `Supervisor`.
    """

    def __init__(
        self,
        *,
        max_nodes: int = MAX_NODES,
        max_pods: int = MAX_PODS,
        max_objects: int = MAX_OBJECTS,
    ) -> None:
        """Start empty, with room for so many nodes, pods, and objects of additional kinds."""
        self.snapshot = Snapshot(max_nodes)
        self._max_pods = max_pods
        self._max_objects = max_objects
        self.policy = Policy()
        self.generation = 0
        self.step = STEP_SECONDS

    def clear(self, kinds: Iterable[ObjectKind] = ()) -> None:
        """Forget everything: a full snapshot follows, with objects of further *kinds*."""
        self.snapshot = Snapshot(self.snapshot.max_nodes)
        self.snapshot.objects = ObjectStore(kinds)

    def set_nodes(self, nodes: Iterable[tuple[int, bytes]]) -> None:
        """Take over new and changed nodes: rows with JSON."""
        for row, content in nodes:
            self.snapshot.set_node(row, decode_node(content))

    def place_pods(self, pods: Iterable[tuple[int, bytes]]) -> None:
        """Take over new and changed pods: rows of their nodes with JSON.

        Raises:
            TooManyObjectsError: There would be more than the limit.
        """
        for row, content in pods:
            pod = decode_pod(content)
            is_full = len(self.snapshot.pods) >= self._max_pods
            if is_full and self.snapshot.pods.row_of(pod.uid) is None:
                raise TooManyObjectsError(f"more than {self._max_pods} pods")
            self.snapshot.place_pod(row, pod, since=None if self.generation else self._placed(pod))

    def open_kinds(self, kinds: Iterable[ObjectKind]) -> None:
        """Let objects of additional kinds come; raises TooManyObjectsError."""
        objects = self.snapshot.objects
        objects.open(kinds)
        if len(objects.counts) > MAX_KINDS:
            raise TooManyObjectsError(f"more than {MAX_KINDS} additional kinds of objects")

    def put_objects(self, objects: Iterable[tuple[ObjectName, bytes]]) -> None:
        """Take over new and changed objects of additional kinds: names with JSON.

        Raises:
            TooManyObjectsError: There would be more than the limit.
        """
        store = self.snapshot.objects
        for name, content in objects:
            if len(store) >= self._max_objects and name not in store:
                raise TooManyObjectsError(
                    f"more than {self._max_objects} objects of additional kinds"
                )
            store.put(name, content)

    async def run(
        self,
        cycle: CycleInput,
        engine: Engine[Run],
        supervisor: Supervisor,
    ) -> tuple[Nodes, Run]:
        """Run one cycle; return its nodes, in order, and the engine's result.

        Args:
            cycle: The cycle.
            engine: Runs the plugins.
            supervisor: Supervises them.

        Raises:
            NoStateError: There is no state yet and the cycle brought no nodes.
            TooManyNodesError: A node that the cycle brought has a row beyond the limit.
            UnknownNameError: A node, the profile or the plugin does not exist.
            PluginFailedError: A plugin failed whose failure aborts the cycle.
            TimeoutError: The supervisor's deadline passed.
        """
        overrides, snapshot = cycle.overrides, self.snapshot
        if cycle.given:
            overrides = {**overrides, **self._rows_for(cycle.given)}
        if self.generation == 0 and not overrides:
            raise NoStateError("this replica has no state yet: no gateway has opened a session")
        supervisor.step = self.step
        by_hand = cycle.by_hand
        profile = self.policy.profile(cycle.profile, cycle.plugin, calls_by_hand=by_hand)
        uid = cycle.pod.metadata.uid
        as_it_is = not overrides and not cycle.excluded_pods and not cycle.added_pods
        if as_it_is and snapshot.pods.row_of(uid) is None:
            nodes = self._select(cycle)
            return nodes, await engine(profile, cycle.pod, nodes, supervisor)
        # A pod that is bound already may be filtered again after a bind whose answer was lost.
        with snapshot.overlaid(overrides, (*cycle.excluded_pods, uid), cycle.added_pods):
            nodes = self._select(cycle)
            if overrides:
                nodes.names  # noqa: B018 - read while nodes that the cycle brought are there
            return nodes, await engine(profile, cycle.pod, nodes, supervisor)

    def _placed(self, pod: Pod) -> float:
        """Guess since when a pod of the full snapshot has its node; later ones come just now."""
        return placed_at(pod, self.snapshot.placements.now())

    def _rows_for(self, given: Iterable[NodeManifest]) -> dict[int, NodeManifest]:
        """Give nodes the rows of their namesakes, or rows beyond the table."""
        free = itertools.count(self.snapshot.capacity)
        rows = {node.name: self.snapshot.row_of(node.name) for node in given}
        taken = {name: next(free) if row is None else row for name, row in rows.items()}
        return {taken[node.name]: node for node in given}

    def _select(self, cycle: CycleInput) -> Nodes:
        if cycle.candidates:
            return Nodes(self.snapshot, self.snapshot.rows_of(cycle.candidates))
        if cycle.names is None:
            return self.snapshot.nodes()
        return self.snapshot.nodes(np.array([self._row(name) for name in cycle.names], np.intp))

    def _row(self, name: str) -> int:
        row = self.snapshot.row_of(name)
        if row is None:
            raise UnknownNameError(f"unknown node {name!r}")
        return row
