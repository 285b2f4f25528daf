"""Turns what is handed to the writer's thread into the messages of a journal."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gateway.cluster.changes import Changes
from gateway.journal.entries import EndedBind, EndedCycle, PolicyChange
from gateway.journal.redaction import Redaction
from moorage.models import ObjectKind
from moorage.v1 import journal_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.rpc.convert import kind_to_proto, object_name_to_proto


def state_record(changes: Changes, redaction: Redaction) -> pb.JournalRecord:
    """Return changes of the state as a record."""
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
    return record


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


def policy_record(entry: PolicyChange) -> pb.JournalRecord:
    """Return a policy as a record."""
    resolved = entry.resolved
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
            plugins=_plugins(entry.plugins),
            filter=policies["filter"],
            score=policies["score"],
        )
    )


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


def cycle_record(entry: EndedCycle, redaction: Redaction) -> pb.JournalRecord:
    """Return a cycle as a record."""
    record = pb.JournalRecord()
    cycle = record.cycle
    cycle.id, cycle.kind = entry.id, pb.JournalCycleKind.ValueType(entry.kind)
    cycle.profile, cycle.plugin = entry.profile, entry.plugin
    cycle.policy_revision, cycle.epoch = entry.policy_revision, entry.epoch
    cycle.pod, cycle.generation = redaction.pod(entry.pod), entry.generation
    for row, manifest in entry.given:
        cycle.overrides.add(row=row, json=redaction.manifest(manifest))
    cycle.excluded_pods.extend(entry.excluded_pods)
    cycle.failures.extend(entry.failures)
    cycle.claim, cycle.error = entry.claim, entry.error
    cycle.unknown_nodes, cycle.score_scale = entry.unknown_nodes, entry.score_scale
    _add_verdicts(cycle, entry)
    _add_scores(cycle, entry)
    return record


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


def bind_record(entry: EndedBind) -> pb.JournalRecord:
    """Return the outcome of a bind as a record."""
    return pb.JournalRecord(
        bind=pb.JournalBind(
            namespace=entry.namespace,
            name=entry.name,
            uid=entry.uid,
            node=entry.node,
            error=entry.error,
            cycle=entry.cycle,
        )
    )
