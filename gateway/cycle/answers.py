"""What the plugins of a phase say of nodes, by row: verdicts of filters, scores of scorers.

Decoded once from what replicas answer, or put together by the cache. Whoever shows them makes a
view: the edge reasons by node name, decisions the table of nodes. The functions at the end are the
rules by which totals become numbers and claims, in live cycles, what-ifs and simulations alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle.decision import (
    UNKNOWN_NODE,
    FilterRecord,
    GroupRecord,
    NodeScoreRecord,
    PluginRecord,
    PluginScoreRecord,
    ReasonCount,
    ScoreRecord,
)
from gateway.cycle.nodes import NodeRows, NodeSet, Positions, index_of
from moorage.execution import PluginRejection, PluginScores
from moorage.plugin.cycle_state import KeptValue
from moorage_host.plugins.ranking import best

Codes = npt.NDArray[np.uint16]

UNKNOWN_NODE_CODE = 0xFFFF
"""The verdict on nodes that have no row; a cycle never has so many reasons."""

NO_ROWS = NodeRows.at(np.zeros(0, np.intp), 0)
"""Stands in answers that are kept for people: the bitmap is enough there, and much smaller."""


def _no_filter_record() -> FilterRecord:
    return FilterRecord(nodes=0, feasible=0, seconds=0.0)


def _no_score_record() -> ScoreRecord:
    return ScoreRecord(nodes=0, seconds=0.0)


class PhaseVerdicts(msgspec.Struct, kw_only=True, eq=False):
    """The verdicts of a filter phase.

    Attributes:
        bitmap: The rows that it was about.
        codes: For each of them 0, or the number of the reason, from 1 on.
        reasons: Why nodes were rejected.
        rows: The rows by position in the call.
        record: What is kept of it: the verdicts by plugin, and what plugins report.
        generation: The verdicts are of this generation of the state, or of a later one.
        kept: What plugins keep for the bind.
        group: How the trial placement of the pod's group ended; None without a group.
        found: The nodes that it found, by the uid of the group's pods.
    """

    bitmap: bytes
    codes: Codes
    reasons: Sequence[PluginRejection] = ()
    rows: NodeRows = NO_ROWS
    record: FilterRecord = msgspec.field(default_factory=_no_filter_record)
    generation: int = 0
    kept: Mapping[str, KeptValue] = {}
    group: GroupRecord | None = None
    found: Mapping[str, str] = {}

    def on(self, row: int) -> PluginRejection | Literal["feasible"] | None:
        """Return why the node in *row* was rejected; None if the phase was not about it."""
        index = index_of(self.bitmap, row)
        if index is None:
            return None
        code = int(self.codes[index])
        return self.reasons[code - 1] if code else "feasible"

    def feasible(self, nodes: NodeSet) -> NodeSet:
        """Return those of the call's nodes that passed."""
        return nodes.restricted(self.rows.to_call_order(self.codes, UNKNOWN_NODE_CODE) == 0)

    def rejected(self, nodes: NodeSet) -> tuple[dict[str, str], dict[str, str]]:
        """Return the reasons by node: those that evicting pods might cure, and the others."""
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        if self.record.feasible == len(nodes.names):
            return failed, unresolvable
        targets = {
            code: (unresolvable if reason.unresolvable else failed, reason.text)
            for code, reason in enumerate(self.reasons, start=1)
        }
        targets[UNKNOWN_NODE_CODE] = (unresolvable, UNKNOWN_NODE)
        by_position = self.rows.to_call_order(self.codes, UNKNOWN_NODE_CODE)
        (positions,) = by_position.nonzero()
        names, codes = nodes.names, by_position[positions].tolist()
        for position, code in zip(positions.tolist(), codes, strict=True):
            target, text = targets[code]
            target[names[position]] = text
        return failed, unresolvable

    def count(self) -> None:
        """Note in the record how many nodes are feasible, and what each plugin rejected and why."""
        record, reasons, rows = self.record, self.reasons, self.rows
        record.unknown_nodes = len(rows.by_position) - rows.count and rows.unknown
        record.nodes = rows.count + record.unknown_nodes
        if not reasons:
            record.feasible = rows.count
            return
        counts = np.bincount(self.codes, minlength=len(reasons) + 1).tolist()
        record.feasible = counts[0]
        by_name: dict[str, PluginRecord] = {}
        for plugin in record.plugins:
            by_name[plugin.plugin] = plugin
            plugin.rejected, plugin.reasons = 0, []
        for reason, count in zip(reasons, counts[1:], strict=True):
            rejecting = by_name.get(reason.plugin)
            if rejecting is not None and count:
                rejecting.rejected += count
                rejecting.reasons.append(
                    ReasonCount(
                        reason=reason.text,
                        nodes=count,
                        unresolvable=reason.unresolvable,
                        cured_by=reason.cured_by,
                    )
                )


class PhaseScores(msgspec.Struct, kw_only=True, eq=False):
    """The scores of a score phase, in ascending order of rows.

    Attributes:
        generation: The scores are of this generation of the state, or of a later one.
        bitmap: The rows that it was about.
        totals: The totals in single precision, 0..100; empty if no plugin has an opinion, or if
            only raw scores were asked for. Shape (nodes,).
        plugins: The opinions that make them up, in the order in which the plugins ran. Raw scores
            have single precision if that is exact, normalised ones have it always and are the same
            array if they are equal.
        rows: The rows by position in the call.
        record: What is kept of it: the best nodes, and what plugins report.
        kept: What plugins keep for the bind.
    """

    generation: int
    bitmap: bytes
    totals: npt.NDArray[np.float32]
    plugins: Sequence[PluginScores]
    rows: NodeRows = NO_ROWS
    record: ScoreRecord = msgspec.field(default_factory=_no_score_record)
    kept: Mapping[str, KeptValue] = {}

    def index_of(self, row: int) -> int | None:
        """Return where the scores of a row are; None if it has none."""
        return index_of(self.bitmap, row)

    def note_top(self, count: int, names: Sequence[str | None], at: Positions) -> None:
        """Note the best nodes in the record, best first, with what their totals are made of.

        *at* says where in *names* the node of each total is.
        """
        totals, top = self.totals, list[NodeScoreRecord]()
        self.record.top = top
        if not len(totals):
            return
        for index in best(totals, count):
            parts = []
            for each in self.plugins:
                parts.append(  # noqa: PERF401 - in Python 3.11 a comprehension is a call
                    PluginScoreRecord(
                        plugin=each.plugin,
                        raw=each.raw.item(index),
                        normalized=each.normalized.item(index),
                        weight=each.weight,
                    )
                )
            node = names[at.item(index)] or ""
            top.append(NodeScoreRecord(node=node, total=totals.item(index), plugins=parts))


AnswerT = TypeVar("AnswerT", PhaseVerdicts, PhaseScores)
"""What the plugins of either phase say."""


def claimed(uid: str, names: Sequence[str], totals: npt.NDArray[Any] | None = None) -> int:
    """Return the position of the node that a pod claims: the best one.

    Equally good nodes are spread over the pods. Their order is that of their names: callers
    name nodes in an order of their own, and another copy of the state has other rows.

    Args:
        uid: The pod's UID.
        names: The names of the feasible nodes, at least one.
        totals: Their totals; None if no plugin had an opinion.
    """
    best: Sequence[int] = range(len(names))
    if totals is not None:
        totals = totals.astype(np.float32)  # their precision on the wire
        best = np.flatnonzero(totals == totals.max()).tolist()
    ordered = sorted(best, key=names.__getitem__)
    return ordered[crc32(uid.encode()) % len(ordered)]


def whole(totals: npt.ArrayLike, scale: int) -> npt.NDArray[np.int64]:
    """Return totals as the whole numbers 0..*scale* that are sent: 0.5 is rounded up."""
    return (np.asarray(totals, np.float64) * (scale / 100) + 0.5).astype(np.int64)


def ties(totals: npt.NDArray[Any], sent: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return how many nodes have the best total, and how many others rounding made equal to it.

    *sent* is `whole` of the totals.
    """
    if not len(totals):
        return 0, 0
    best = totals.argmax()
    shared = int(np.count_nonzero(totals == totals[best]))
    return shared, int(np.count_nonzero(sent == sent[best])) - shared
