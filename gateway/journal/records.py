"""What the event loop hands to the writer's thread, and how the thread makes records of it.

An entry has references to what never changes, nothing is copied; its size is a guess of the memory
that it keeps. It becomes a message only in the thread, without what may be secret: a journal is on
disk, and people send it around. Of pods and nodes, Moorage keeps only the fields that scheduling
reads: no environment, commands or volumes with secrets. Their annotations, and the other objects
that plugins read, are as they are in the cluster.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct, structs
from msgspec.structs import replace

from gateway.cluster.changes import Changes
from gateway.cycle import Cycle
from gateway.cycle.cycle import NO_NODES
from gateway.cycle.decision import Decision
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Verdicts
from moorage.models import NodeManifest, ObjectKind, ObjectName, Pod, decode_node, encode
from moorage.v1 import journal_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.policy import KINDS, ResolvedPolicy
from moorage_host.rpc.convert import kind_to_proto, object_name_to_proto

REMOVED = "redacted"
"""Stands for a value that was left out."""

_SECRET_FIELDS = ("data", "stringData")
_decode = msgspec.json.Decoder().decode


class Redaction:
    """What is left out.

    Attributes:
        kept: The annotations that are not; * stands for any characters.
    """

    def __init__(self, kept: Sequence[str]) -> None:
        self.kept = tuple(kept)
        self._is_kept = re.compile("|".join(map(translate, kept)) or r"(?!)").match

    def pod(self, pod: Pod) -> bytes:
        """Return a pod as JSON."""
        if pod.metadata.annotations:
            kept = self._annotations(pod.metadata.annotations)
            pod = replace(pod, metadata=replace(pod.metadata, annotations=kept))
        return encode(pod)

    def node(self, content: bytes) -> bytes:
        """Return a node as JSON, of its JSON."""
        if b'"annotations"' not in content:
            return content
        return self.manifest(decode_node(content))

    def manifest(self, node: NodeManifest) -> bytes:
        """Return a node as JSON."""
        if node.metadata.annotations:
            kept = self._annotations(node.metadata.annotations)
            node = replace(node, metadata=replace(node.metadata, annotations=kept))
        return encode(node)

    def object(self, name: ObjectName, content: bytes) -> bytes:
        """Return an object of an additional kind as JSON, of its JSON."""
        obj = _decode(content)
        if name.kind.plural == "secrets" and not name.kind.group:
            for field in _SECRET_FIELDS:
                if isinstance(values := obj.get(field), dict):
                    obj[field] = dict.fromkeys(values, "")
        return encode(self._cleaned(obj))

    def _cleaned(self, value: Any) -> Any:
        """Return JSON without values of environment variables, and with few annotations."""
        if isinstance(value, dict):
            return {key: self._field(key, part) for key, part in value.items()}
        return [self._cleaned(part) for part in value] if isinstance(value, list) else value

    def _field(self, key: str, value: Any) -> Any:
        if key == "annotations" and isinstance(value, dict):
            return self._annotations(value)
        if key == "env" and isinstance(value, list):
            return [_without_value(each) for each in value]
        return self._cleaned(value)

    def _annotations(self, annotations: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in annotations.items() if self._is_kept(key)}


def _without_value(variable: Any) -> Any:
    if isinstance(variable, dict) and "value" in variable:
        return {**variable, "value": REMOVED}
    return variable


FIXED = 500
"""Bytes that any entry takes."""

OBJECT = 2000
"""Bytes that a node, pod or other object takes; most are in the cluster state all the same."""


Kind = Literal["opening", "part", "last part", "state", "policy", "cycle", "bind", "end", "last"]
"""What an entry is.

opening: A new segment begins; its snapshot follows, while the segment before it goes on.
part: A part of the snapshot; the last part ends the segment before.
end: The segment ends here: something was dropped, or the gateway ends (last).
"""


class Entry(Struct, frozen=True, eq=False):
    """What is written.

    Attributes:
        kind: What it is.
        records: Makes its records; called in the thread.
        size: Bytes of memory that it keeps.
    """

    kind: Kind
    records: Callable[[Redaction], Sequence[pb.JournalRecord]] = lambda _: ()
    size: int = FIXED


def opening(generation: int, kinds: Sequence[ObjectKind], objects: int) -> Entry:
    """Return the begin of a segment, whose snapshot has so many objects."""

    def records(_: Redaction) -> Sequence[pb.JournalRecord]:
        header = pb.JournalRecord(header=pb.JournalHeader(objects=objects))
        return header, _kinds(kinds, generation, full=True)

    return Entry("opening", records)


def state_change(changes: Changes, *, is_snapshot: bool = False) -> Entry:
    """Return a change of the state, or a part of the snapshot."""

    def records(redaction: Redaction) -> Sequence[pb.JournalRecord]:
        record = pb.JournalRecord()
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
        return (record,)

    kind: Kind = "state"
    if is_snapshot:
        kind = "part" if changes.partial else "last part"
    objects = len(changes.nodes) + len(changes.pods) + len(changes.objects)
    return Entry(kind, records, FIXED + OBJECT * objects)


def policy_change(
    resolved: ResolvedPolicy,
    plugins: Mapping[str, Sequence[types_pb2.Plugin]],
    kinds: Sequence[ObjectKind],
    generation: int,
) -> Entry:
    """Return the policy and the plugins from here on, and the additional kinds that they read."""

    def records(_: Redaction) -> Sequence[pb.JournalRecord]:
        filters, scores = (
            types_pb2.Policy(
                revision=resolved.policies[kind].revision, json=resolved.for_kind(kind)
            )
            for kind in KINDS[:2]
        )
        policy = pb.JournalPolicy(
            revision=resolved.revision,
            source=resolved.source,
            document=resolved.to_yaml(),
            plugins=_plugins(plugins),
            filter=filters,
            score=scores,
        )
        return _kinds(kinds, generation), pb.JournalRecord(policy=policy)

    return Entry("policy", records)


def ended_cycle(cycle: Cycle, number: int) -> Entry:
    """Return a cycle that has ended, as it was then, and its number."""
    rows, decision = cycle.rows or cycle.scored, cycle.decision
    verdicts, scores = cycle.verdicts, cycle.scores
    # Without the names of its nodes, which take much memory.
    kept = structs.replace(
        cycle,
        nodes=NO_NODES,
        rows=None,
        scored=None,
        names=(),
        names_after=(),
        points=(),
        scoring=None,
    )
    given = rows.given if rows is not None else ()
    failures, error = list(_failures(decision)), decision.error
    scale = decision.score.scale if decision.score else 0

    def records(redaction: Redaction) -> Sequence[pb.JournalRecord]:
        record = pb.JournalRecord()
        message = record.cycle
        message.id, message.kind = number, _kind(kept)
        message.profile, message.plugin = kept.profile, kept.plugin
        message.policy_revision, message.epoch = decision.policy_revision, decision.epoch
        message.pod, message.generation = redaction.pod(kept.pod), decision.generation
        if scores is not None and verdicts is None:
            message.generation = scores.generation
        for row, manifest in given:
            message.overrides.add(row=row, json=redaction.manifest(manifest))
        message.excluded_pods.extend(kept.excluded_pods)
        message.failures.extend(failures)
        message.claim = decision.claim.node if decision.claim else ""
        message.error, message.score_scale = error, scale
        if (filtered := decision.preempt or decision.filter) is not None:
            message.unknown_nodes = filtered.unknown_nodes
        if verdicts is not None:
            _add_verdicts(message.verdicts, verdicts)
        if scores is not None:
            _add_scores(message.scores, scores)
        return (record,)

    size = FIXED + OBJECT + OBJECT * len(given)
    if verdicts is not None:
        size += verdicts.codes.nbytes
    if scores is not None:
        size += scores.totals.nbytes * (1 + 3 * len(scores.plugins))
    return Entry("cycle", records, size)


def ended_bind(bind: pb.JournalBind) -> Entry:
    """Return the outcome of a bind."""
    return Entry("bind", lambda _: (pb.JournalRecord(bind=bind),))


def _kinds(kinds: Iterable[ObjectKind], generation: int, *, full: bool = False) -> pb.JournalRecord:
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
