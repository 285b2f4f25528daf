"""What the event loop hands to the writer's thread, and how the thread makes records of it.

An entry has references to what never changes, nothing is copied; its size is a guess of the memory
that it keeps. It becomes a message only in the thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.cluster.changes import Changes
from gateway.decisions.cycle import NodeScores, SchedulingCycle
from gateway.decisions.records import Decision
from gateway.decisions.verdicts import NodeVerdicts
from gateway.journal.redaction import Redaction
from moorage.models import NodeManifest, ObjectKind, Pod
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
    """The policy and the plugins from here on, and the further kinds that plugins read."""

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

    @classmethod
    def of(cls, cycle: SchedulingCycle, number: int) -> "EndedCycle":
        """Return a cycle that has ended as the entry of this number."""
        request, decision = cycle.request, cycle.decision
        record = decision.preempt or decision.filter
        rows = request.nodes.rows[1] if request.nodes.rows else None
        has_verdicts = cycle.verdicts is not None
        generation = decision.generation
        if cycle.scores is not None and not has_verdicts:
            generation = cycle.scores.generation
        return cls(
            id=number,
            kind=_kind(cycle),
            profile=request.profile,
            policy_revision=decision.policy_revision,
            epoch=decision.epoch,
            pod=request.pod,
            plugin=request.plugin,
            generation=generation,
            given=rows.given if rows else (),
            excluded_pods=request.excluded_pods,
            verdicts=cycle.verdicts,
            claimants=record.claimants if record else (),
            scores=cycle.scores,
            failures=list(_failures(decision)),
            claim=decision.claim.node if decision.claim else "",
            error=decision.error,
            unknown_nodes=record.unknown_nodes if record else 0,
            score_scale=decision.score.scale if decision.score else 0,
        )

    @property
    def size(self) -> int:
        """Bytes of memory."""
        size = FIXED + OBJECT + OBJECT * len(self.given)
        if self.verdicts is not None:
            size += self.verdicts.codes.nbytes
        if self.scores is not None:
            size += self.scores.totals.nbytes * (1 + 3 * len(self.scores.plugins))
        return size

    def record(self, redaction: Redaction) -> pb.JournalRecord:
        """Return the record."""
        record = pb.JournalRecord()
        cycle = record.cycle
        cycle.id, cycle.kind = self.id, pb.JournalCycleKind.ValueType(self.kind)
        cycle.profile, cycle.plugin = self.profile, self.plugin
        cycle.policy_revision, cycle.epoch = self.policy_revision, self.epoch
        cycle.pod, cycle.generation = redaction.pod(self.pod), self.generation
        for row, manifest in self.given:
            cycle.overrides.add(row=row, json=redaction.manifest(manifest))
        cycle.excluded_pods.extend(self.excluded_pods)
        cycle.failures.extend(self.failures)
        cycle.claim, cycle.error = self.claim, self.error
        cycle.unknown_nodes, cycle.score_scale = self.unknown_nodes, self.score_scale
        _add_verdicts(cycle, self)
        _add_scores(cycle, self)
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
    """Return the record that announces further kinds; *full* begins a snapshot with them."""
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


def _kind(cycle: SchedulingCycle) -> pb.JournalCycleKind.ValueType:
    if cycle.decision.preempt is not None or cycle.request.excluded_pods:
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


def _add_verdicts(cycle: pb.JournalCycle, entry: EndedCycle) -> None:
    verdicts = entry.verdicts
    if verdicts is None:
        return
    cycle.verdicts.nodes = verdicts.bitmap
    if np.count_nonzero(verdicts.codes):
        cycle.verdicts.codes = verdicts.codes.astype("<u2", copy=False).tobytes()
    for reason in verdicts.reasons:
        cycle.verdicts.reasons.add(
            plugin=reason.plugin, text=reason.text, unresolvable=reason.unresolvable
        )
    cycle.verdicts.claimants.extend(entry.claimants)


def _add_scores(cycle: pb.JournalCycle, entry: EndedCycle) -> None:
    scores = entry.scores
    if scores is None:
        return
    cycle.scores.generation, cycle.scores.nodes = scores.generation, scores.bitmap
    cycle.scores.totals = scores.totals.astype("<f4", copy=False).tobytes()
    for each in scores.plugins:
        raw = each.raw.astype("<f8", copy=False).tobytes()
        cycle.scores.plugins.add(plugin=each.plugin, weight=each.weight, raw=raw)
