"""What the event loop hands to the writer's thread, and how the thread makes records of it.

An entry has references to what never changes, nothing is copied; its size is a guess of the memory
that it keeps. It becomes a message only in the thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from gateway.cluster.changes import Changes
from gateway.cycle import Cycle
from gateway.cycle.cycle import NO_NODES
from gateway.cycle.decision import Decision
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Verdicts
from gateway.journal.redaction import Redaction
from moorage.models import NodeManifest, ObjectKind
from moorage.v1 import journal_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.policy import ResolvedPolicy
from moorage_host.rpc.convert import kind_to_proto, object_name_to_proto

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
class StateChange:
    """A change of the state, or a part of the snapshot; its last part ends the segment before."""

    changes: Changes
    is_snapshot: bool = False

    @property
    def size(self) -> int:
        """Bytes of memory."""
        changes = self.changes
        objects = len(changes.nodes) + len(changes.pods) + len(changes.objects)
        return FIXED + OBJECT * objects

    def record(self, redaction: Redaction) -> pb.JournalRecord:
        """Return the record."""
        changes, record = self.changes, pb.JournalRecord()
        state = record.state
        state.generation, state.partial = changes.generation, changes.partial
        state.removed_rows.extend(changes.removed_rows)
        state.removed_pods.extend(changes.removed_pods)
        for row, content in changes.nodes:
            state.nodes.add(row=row, json=redaction.node(content))
        for row, pod in changes.pods:
            state.pods.add(row=row, json=redaction.pod(pod))
        for name, content in changes.objects:
            reference = object_name_to_proto(name)
            state.objects.add(reference=reference, json=redaction.object(name, content))
        state.removed_objects.extend(map(object_name_to_proto, changes.removed_objects))
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """The policy and the plugins from here on, and the additional kinds that plugins read."""

    resolved: ResolvedPolicy
    plugins: Mapping[str, Sequence[types_pb2.Plugin]]
    kinds: Sequence[ObjectKind]
    generation: int
    size: int = FIXED

    def record(self, redaction: Redaction) -> pb.JournalRecord:
        """Return the record."""
        del redaction
        resolved = self.resolved
        policies = {
            kind: types_pb2.Policy(
                revision=resolved.policies[kind].revision, json=resolved.for_kind(kind)
            )
            for kind in ("filter", "score")
        }
        return pb.JournalRecord(
            policy=pb.JournalPolicy(
                revision=resolved.revision,
                source=resolved.source,
                document=resolved.to_yaml(),
                plugins=_plugins(self.plugins),
                filter=policies["filter"],
                score=policies["score"],
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCycle:
    """A cycle that has ended, as it was then, and its number.

    Attributes:
        id: The number.
        cycle: The cycle, without the names of its nodes, which take much memory.
        given: Rows and manifests of nodes that the call brought and that differ from the state's.
        failures: What failed, though the cycle went on without it.
        error: Why the cycle failed.
        score_scale: The whole number that was sent for a total of 100, 0 if none was sent.
    """

    id: int
    cycle: Cycle
    given: Sequence[tuple[int, NodeManifest]]
    failures: Sequence[str]
    error: str
    score_scale: int

    @classmethod
    def of(cls, cycle: Cycle, number: int) -> "EndedCycle":
        """Return a cycle that has ended as the entry of this number."""
        decision, rows = cycle.decision, cycle.rows or cycle.scored
        return cls(
            id=number,
            cycle=structs.replace(
                cycle,
                nodes=NO_NODES,
                rows=None,
                scored=None,
                names=(),
                names_after=(),
                points=(),
                scoring=None,
            ),
            given=rows.given if rows is not None else (),
            failures=list(_failures(decision)),
            error=decision.error,
            score_scale=decision.score.scale if decision.score else 0,
        )

    @property
    def size(self) -> int:
        """Bytes of memory."""
        cycle = self.cycle
        size = FIXED + OBJECT + OBJECT * len(self.given)
        if cycle.verdicts is not None:
            size += cycle.verdicts.codes.nbytes
        if cycle.scores is not None:
            size += cycle.scores.totals.nbytes * (1 + 3 * len(cycle.scores.plugins))
        return size

    def record(self, redaction: Redaction) -> pb.JournalRecord:
        """Return the record."""
        cycle, decision, record = self.cycle, self.cycle.decision, pb.JournalRecord()
        verdicts, scores, message = cycle.verdicts, cycle.scores, record.cycle
        message.id, message.kind = self.id, _kind(cycle)
        message.profile, message.plugin = cycle.profile, cycle.plugin
        message.policy_revision, message.epoch = decision.policy_revision, decision.epoch
        message.pod, message.generation = redaction.pod(cycle.pod), decision.generation
        if scores is not None and verdicts is None:
            message.generation = scores.generation
        for row, manifest in self.given:
            message.overrides.add(row=row, json=redaction.manifest(manifest))
        message.excluded_pods.extend(cycle.excluded_pods)
        message.failures.extend(self.failures)
        message.claim = decision.claim.node if decision.claim else ""
        message.error, message.score_scale = self.error, self.score_scale
        if (filtered := decision.preempt or decision.filter) is not None:
            message.unknown_nodes = filtered.unknown_nodes
        if verdicts is not None:
            _add_verdicts(message.verdicts, verdicts)
        if scores is not None:
            _add_scores(message.scores, scores)
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBind:
    """The outcome of a bind."""

    bind: pb.JournalBind
    size: int = FIXED

    def record(self, redaction: Redaction) -> pb.JournalRecord:
        """Return the record."""
        del redaction
        return pb.JournalRecord(bind=self.bind)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The segment ends here: something was dropped, or (*is_last*) the gateway ends."""

    is_last: bool = False
    size: int = FIXED


Entry = Opening | StateChange | PolicyChange | EndedCycle | EndedBind | End


def kinds_record(
    kinds: Iterable[ObjectKind], generation: int, *, full: bool = False
) -> pb.JournalRecord:
    """Return the record that announces additional kinds; *full* begins a snapshot with them."""
    state = types_pb2.State(
        generation=generation,
        full=full,
        partial=full,
        kinds=[kind_to_proto(kind) for kind in sorted(kinds)],
    )
    return pb.JournalRecord(state=state)


def _plugins(plugins: Mapping[str, Sequence[types_pb2.Plugin]]) -> list[pb.JournalPlugin]:
    """Return the plugins of all replicas, each once."""
    found = {
        (kind, plugin.name, plugin.version): plugin.origin
        for kind, each in plugins.items()
        for plugin in each
    }
    return [
        pb.JournalPlugin(kind=kind, name=name, version=version, origin=origin)
        for (kind, name, version), origin in sorted(found.items())
    ]


def _kind(cycle: Cycle) -> pb.JournalCycleKind.ValueType:
    if cycle.decision.preempt is not None or cycle.excluded_pods:
        return pb.JOURNAL_CYCLE_KIND_PREEMPT
    if cycle.verdicts is None and cycle.scores is not None:
        return pb.JOURNAL_CYCLE_KIND_SCORE
    return pb.JOURNAL_CYCLE_KIND_FILTER


def _failures(decision: Decision) -> Iterator[str]:
    for phase in (decision.preempt, decision.filter, decision.score):
        for plugin in phase.plugins if phase else ():
            if plugin.failure:
                yield f"{plugin.plugin}: {plugin.failure}"
    if decision.score_error:
        yield f"scores: {decision.score_error}"


def _add_verdicts(message: pb.JournalVerdicts, verdicts: Verdicts) -> None:
    message.nodes = verdicts.bitmap
    if np.count_nonzero(verdicts.codes):
        message.codes = verdicts.codes.astype("<u2", copy=False).tobytes()
    for reason in verdicts.reasons:
        message.reasons.add(
            plugin=reason.plugin, text=reason.text, unresolvable=reason.unresolvable
        )
    message.claimants.extend(verdicts.record.claimants)


def _add_scores(message: pb.JournalScores, scores: Scores) -> None:
    message.generation, message.nodes = scores.generation, scores.bitmap
    message.totals = scores.totals.astype("<f4", copy=False).tobytes()
    for each in scores.plugins:
        raw = each.raw.astype("<f8", copy=False).tobytes()
        message.plugins.add(plugin=each.plugin, weight=each.weight, raw=raw)
