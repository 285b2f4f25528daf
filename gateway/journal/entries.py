"""What the event loop hands to the writer's thread: references to what never changes.

They become messages only in the thread. Each has a size, which is a guess of the memory it keeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.cluster.changes import Changes
from gateway.decisions.cycle import NodeScores
from gateway.decisions.verdicts import NodeVerdicts
from moorage.models import NodeManifest, ObjectKind, Pod
from moorage.v1 import types_pb2 as pb
from moorage_host.policy import ResolvedPolicy

FIXED = 500
"""Bytes that any entry takes."""

OBJECT = 2000
"""Bytes that a node, pod or other object takes; most are in the cluster state all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A new segment begins; its snapshot follows, while the segment before it goes on."""

    generation: int
    kinds: Sequence[ObjectKind]
    objects: int
    size: int = FIXED


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart:
    """A part of that snapshot; with the last one, the new segment is there."""

    changes: Changes

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return size_of(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A change of the state."""

    changes: Changes

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return size_of(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """The policy and the plugins from here on, and the further kinds that plugins read."""

    resolved: ResolvedPolicy
    plugins: Mapping[str, Sequence[pb.Plugin]]
    kinds: Sequence[ObjectKind]
    generation: int
    size: int = FIXED


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCycle:
    """A cycle that has ended; the fields are those of `JournalCycle`."""

    id: int
    kind: int
    profile: str
    policy_revision: str
    epoch: int
    pod: Pod
    plugin: str
    generation: int
    given: Sequence[tuple[int, NodeManifest]]
    excluded_pods: Sequence[str]
    verdicts: NodeVerdicts | None
    claimants: Sequence[str]
    scores: NodeScores | None
    failures: Sequence[str]
    claim: str
    error: str
    unknown_nodes: int
    score_scale: int

    @property
    def size(self) -> int:
        """Bytes of memory."""
        size = FIXED + OBJECT + OBJECT * len(self.given)
        if self.verdicts is not None:
            size += self.verdicts.codes.nbytes
        if self.scores is not None:
            size += self.scores.totals.nbytes * (1 + 3 * len(self.scores.plugins))
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBind:
    """The outcome of a bind."""

    namespace: str
    name: str
    uid: str
    node: str
    error: str
    cycle: int
    size: int = FIXED


@dataclass(frozen=True, slots=True)
class Gap:
    """Something was dropped: the segment ends here, and so does one that is not complete."""

    size: int = FIXED


@dataclass(frozen=True, slots=True)
class Stop:
    """The gateway ends."""

    size: int = FIXED


Entry = Opening | SnapshotPart | Delta | PolicyChange | EndedCycle | EndedBind | Gap | Stop


def size_of(changes: Changes) -> int:
    """Return the memory that changes keep, about."""
    objects = len(changes.nodes) + len(changes.pods) + len(changes.objects)
    return FIXED + OBJECT * objects
