"""Reads what a replica answered in a cycle: once, into what the gateway decides by.

A result that cannot be right is refused as a whole (`NonsenseError`).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gateway.cycle import CallFailedError
from gateway.cycle.answers import Codes, PhaseScores, PhaseVerdicts
from gateway.cycle.decision import FilterRecord, GroupRecord, PluginRecord, ScoreRecord
from gateway.replicas.call import ReplicaAnswer
from moorage.execution import PluginRejection, PluginScores
from moorage.groups import ReasonNodes
from moorage.plugin.cycle_state import KeptValue
from moorage.units.printable import printable
from moorage.v1 import replica_pb2
from moorage.v1 import types_pb2 as pb

SINGLE, DOUBLE = np.dtype("<f4"), np.dtype("<f8")
"""Numbers on the wire: totals and normalised scores are in single precision."""

NO_VALUES: Mapping[str, KeptValue] = {}


class NonsenseError(CallFailedError):
    """A result of a replica that cannot be right."""


def read_verdicts(answer: ReplicaAnswer) -> PhaseVerdicts:
    """Return what a filter replica answered.

    Raises:
        NonsenseError: It cannot be right.
    """
    result, rows = answer.result, answer.rows
    sent, reasons = result.verdicts, []
    for each in result.reasons:
        text = each.text
        if not text.isprintable():  # kube-scheduler writes it into an Event
            text = printable(text)
        reasons.append(PluginRejection(each.plugin, text, each.unresolvable, each.cured_by))
    if not sent:
        codes: Codes = np.zeros(rows.count, np.uint16)
    elif len(sent) != 2 * rows.count:
        raise NonsenseError("filter service answers nonsense: verdicts do not match the nodes")
    else:
        codes = np.frombuffer(sent, "<u2")
        if codes.max() > len(reasons):
            raise NonsenseError("filter service answers nonsense: a verdict has no reason")
    record = FilterRecord(
        nodes=0,
        feasible=0,
        seconds=result.duration.seconds + result.duration.nanos / 1e9,
        plugins=read_reports(result.plugins),
        claimants=list(result.claimants),
        version=answer.version,
    )
    verdicts = PhaseVerdicts(
        bitmap=rows.bitmap,
        codes=codes,
        reasons=reasons,
        rows=rows,
        record=record,
        generation=result.generation,
        kept=read_kept(result.cycle_state) if result.cycle_state else NO_VALUES,
    )
    if result.HasField("group"):
        verdicts.group, verdicts.found = read_group(result.group), dict(result.group.nodes)
    verdicts.count()
    return verdicts


def read_scores(answer: ReplicaAnswer) -> PhaseScores:
    """Return what a scorer replica answered; of a shard, raw scores without totals.

    Raises:
        NonsenseError: It cannot be right.
    """
    result, rows, problem = answer.result, answer.rows, ""
    totals = np.frombuffer(result.totals, SINGLE)
    plugins = read_opinions(result)
    if len(totals):
        if len(totals) != rows.count:
            problem = "scores do not match the nodes"
        elif not (totals.min() >= 0 and totals.max() <= 100):
            problem = "a score is outside 0..100"
        for each in plugins:
            if not problem and not len(each.raw) == len(each.normalized) == rows.count:
                problem = "the plugins' scores do not match the nodes"
    else:
        for each in plugins:
            if len(each.raw) != rows.count or not np.isfinite(each.raw).all():
                problem = "raw scores do not match the nodes"
    if problem:
        raise NonsenseError(f"scorer service answers nonsense: {problem}")
    record = ScoreRecord(
        nodes=rows.count,
        seconds=result.duration.seconds + result.duration.nanos / 1e9,
        plugins=read_reports(result.plugins),
        version=answer.version,
    )
    return PhaseScores(
        generation=result.generation,
        bitmap=rows.bitmap,
        totals=totals,
        plugins=plugins,
        rows=rows,
        record=record,
        kept=read_kept(result.cycle_state) if result.cycle_state else NO_VALUES,
    )


def read_opinions(result: replica_pb2.CycleResult) -> Sequence[PluginScores]:
    """Return what plugins say of each node; without totals, raw scores in double precision."""
    single = len(result.totals)  # so many bytes as raw scores in single precision have
    found = []
    for each in result.scores:
        raw = np.frombuffer(each.raw, SINGLE if single and len(each.raw) == single else DOUBLE)
        normalized = np.frombuffer(each.normalized, SINGLE)
        if single and not each.normalized:
            normalized = raw.astype(SINGLE, copy=False)
        found.append(
            PluginScores(plugin=each.plugin, weight=each.weight, raw=raw, normalized=normalized)
        )
    return found


def read_group(sent: pb.GroupTrial) -> GroupRecord:
    """Return how the trial placement of a group ended; other namespaces' groups stay unnamed."""
    namespace, ahead = sent.name.partition("/")[0], sent.ahead
    if ahead.partition("/")[0] != namespace:
        ahead = ahead and "in another namespace"
    return GroupRecord(
        plugin=sent.plugin,
        name=sent.name,
        members=sent.members,
        min_count=sent.min_count,
        on_nodes=sent.on_nodes,
        fitting=sent.fitting,
        fits=bool(sent.nodes),
        ahead=ahead,
        topology_key=sent.topology_key,
        domain=sent.domain,
        failing=sent.failing,
        reasons=[
            ReasonNodes(reason=each.reason, nodes=each.nodes, examples=list(each.examples))
            for each in sent.reasons
        ],
        lacking=sent.lacking,
        lacking_free=sent.lacking_free,
        lacking_domain=sent.lacking_domain,
        problem=sent.problem,
        like=sent.like,
        more_nodes=sent.more_nodes,
        timeout=sent.timeout.seconds + sent.timeout.nanos / 1e9,
    )


def read_reports(reports: Iterable[pb.PluginReport]) -> list[PluginRecord]:
    """Return what plugins did, without what they rejected."""
    read = []
    for report in reports:
        duration = report.duration
        read.append(
            PluginRecord(
                plugin=report.plugin,
                seconds=duration.seconds + duration.nanos / 1e9,
                skipped=report.skipped,
                failure=report.failure,
                note=report.note,
            )
        )
    return read


def read_kept(values: Iterable[pb.CycleValue]) -> dict[str, KeptValue]:
    """Return by key what plugins keep for the bind; of several values the last one counts."""
    found: dict[str, KeptValue] = {}
    for value in values:
        kept = found.setdefault(value.key, KeptValue())
        kept.json = value.json or kept.json
        kept.by_node.update(value.by_node)
    return found
