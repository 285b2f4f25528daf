"""The verdict on each node and its scores, for the newest attempts: kept, and as people ask."""

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gateway.cycle.answers import NO_ROWS, PhaseScores, PhaseVerdicts
from gateway.cycle.cycle import Cycle, Names
from gateway.cycle.decision import Decision, NodeScoreRecord, PluginScoreRecord, Record
from gateway.cycle.nodes import index_of, rows_of

REASON_BYTES = 200
"""What a reason takes, about."""

NAME_BYTES = 80
"""What a node's name in a call takes, about."""


class NodeArrays(msgspec.Struct, kw_only=True, eq=False):
    """What an attempt found out about each node.

    Rows are reused, so each record keeps its own names.

    Attributes:
        names: The nodes by row when the cycle began.
        names_after: The same when it ended: another object if nodes came or went meanwhile.
        offered: The names in the call, if they are needed to know which node a row had.
        verdicts: The verdicts, if a filter plugin was asked.
        scores: The scores of feasible nodes, if a score plugin had an opinion.
        size: What it takes in addition to what other attempts share with it, in bytes.
    """

    names: Names
    names_after: Names
    offered: Sequence[str] = ()
    verdicts: PhaseVerdicts | None = None
    scores: PhaseScores | None = None
    size: int = 0

    def name_of(self) -> dict[int, str]:
        """Return the node of each row that verdicts or scores are about."""
        bitmaps = [each.bitmap for each in (self.verdicts, self.scores) if each is not None]
        rows = sorted({row for bitmap in bitmaps for row in rows_of(bitmap).tolist()})
        if not self.offered:
            return {row: self.names[row] or "" for row in rows}
        return self._by_offer(rows)

    def total_of(self, node: str) -> float | None:
        """Return the total of a node; None if it has none."""
        row, scores = self.row_of(node), self.scores
        index = scores.index_of(row) if scores is not None and row is not None else None
        return None if scores is None or index is None else float(scores.totals[index])

    def row_of(self, node: str) -> int | None:
        """Return the row that verdicts or scores have about a node; None if there is none."""
        if self.offered:
            return next((row for row, name in self.name_of().items() if name == node), None)
        if node not in self.names:
            return None
        row = self.names.index(node)
        bitmaps = [each.bitmap for each in (self.verdicts, self.scores) if each is not None]
        return row if any(index_of(bitmap, row) is not None for bitmap in bitmaps) else None

    def _by_offer(self, rows: Sequence[int]) -> dict[int, str]:
        """Find out which of two nodes a row had: the one that the call names."""
        offered, known = set(self.offered), {*self.names, *self.names_after}
        # Nodes that only the call brought have rows behind all others, in its order.
        brought = iter(name for name in self.offered if name not in known)
        found = {}
        for row in rows:
            tables = (table for table in (self.names, self.names_after) if row < len(table))
            names = [name for table in tables if (name := table[row])]
            named = [name for name in names if name in offered] or names
            found[row] = named[0] if named else next(brought, "")
        return found


class KeptArrays:
    """The arrays of the newest attempts, by the decision's id.

    Arrays, reasons and tables of names are those of the cycle itself: nothing is copied.
    """

    def __init__(self, *, count: int, memory: int) -> None:
        """Keep those of at most *count* attempts, in at most about *memory* bytes."""
        self._count = count
        self._memory = memory
        self._kept: OrderedDict[str, NodeArrays] = OrderedDict()
        self._newest_names: Names = ()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, decision: str) -> NodeArrays | None:
        """Return those of a decision, if they are still kept."""
        return self._kept.get(decision)

    def totals_of(self, decision: str) -> Callable[[str], float | None] | None:
        """Return what returns the totals of a decision; None if they are not kept."""
        arrays = self._kept.get(decision)
        return arrays.total_of if arrays is not None else None

    def on_cycle_end(self, cycle: Cycle) -> None:
        """Keep those of a cycle; of a cycle that only scores, beside the verdicts before it."""
        if not self._count or (cycle.verdicts is None and cycle.scores is None):
            return
        decision = cycle.decision.id
        before = self._kept.pop(decision, None)
        nodes = cycle.nodes
        arrays = NodeArrays(names=cycle.names, names_after=cycle.names_after)
        if cycle.verdicts is not None:
            arrays.verdicts = replace(cycle.verdicts, rows=NO_ROWS)
        if cycle.scores is not None:
            arrays.scores = replace(cycle.scores, rows=NO_ROWS)
        if before is not None:
            self.bytes -= before.size
            arrays.verdicts = arrays.verdicts or before.verdicts
            arrays.names = before.names
        if nodes.given is not None or arrays.names is not arrays.names_after:
            arrays.offered = nodes.names
        arrays.size = self._size(arrays)
        self.bytes += arrays.size
        self._kept[decision] = arrays
        while self._kept and (len(self._kept) > self._count or self.bytes > self._memory):
            _, oldest = self._kept.popitem(last=False)
            self.bytes -= oldest.size

    def _size(self, arrays: NodeArrays) -> int:
        size = NAME_BYTES * len(arrays.offered)
        if arrays.names_after is not self._newest_names:
            self._newest_names = arrays.names_after
            size += 8 * len(arrays.names_after)
        if (verdicts := arrays.verdicts) is not None:
            size += len(verdicts.bitmap) + 2 * verdicts.codes.nbytes
            size += REASON_BYTES * len(verdicts.reasons)
        if (scores := arrays.scores) is not None:
            size += len(scores.bitmap) + scores.totals.nbytes
            for each in scores.plugins:
                size += each.raw.nbytes + (each.normalized is not each.raw) * each.normalized.nbytes
        return size


class NodeItem(Record, omit_defaults=False):
    """A node in the table.

    Attributes:
        plugin: The one that rejected it, and why.
        rank: Its place in Moorage's order, from 1 on; None without a total.
        scores: By plugin its opinion, `raw` and `normalized`.
    """

    node: str
    verdict: Literal["feasible", "rejected"]
    plugin: str = ""
    reason: str = ""
    rank: int | None = None
    total: float | None = None
    scores: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)


def node_table(arrays: NodeArrays, part: slice) -> dict[str, Any]:
    """Return a part of the nodes, best first, as JSON-like content."""
    plugins = arrays.scores.plugins if arrays.scores is not None else ()
    nodes = sorted(nodes_of(arrays), key=lambda node: (node.rank or math.inf, node.node))
    reasons = arrays.verdicts.reasons if arrays.verdicts is not None else ()
    return {
        "total": len(nodes),
        "plugins": {
            "filter": list(dict.fromkeys(reason.plugin for reason in reasons)),
            "score": [{"plugin": each.plugin, "weight": each.weight} for each in plugins],
        },
        "items": nodes[part],
    }


def nodes_of(arrays: NodeArrays) -> list[NodeItem]:
    """Return all nodes that verdicts or scores are about."""
    names = arrays.name_of()
    nodes = {row: NodeItem(node=name, verdict="feasible") for row, name in names.items()}
    if (verdicts := arrays.verdicts) is not None:
        rejected = verdicts.codes.nonzero()[0].tolist()
        rows, codes = rows_of(verdicts.bitmap).tolist(), verdicts.codes.tolist()
        reasons = [(reason.plugin, reason.text) for reason in verdicts.reasons]
        for index in rejected:
            node = nodes[rows[index]]
            node.verdict = "rejected"
            node.plugin, node.reason = reasons[codes[index] - 1]
    if arrays.scores is not None:
        _add_scores(nodes, arrays.scores)
    return list(nodes.values())


def _add_scores(nodes: Mapping[int, NodeItem], scores: PhaseScores) -> None:
    rows: list[int] = rows_of(scores.bitmap).tolist()
    ascending = np.sort(scores.totals)
    better = len(ascending) - np.searchsorted(ascending, scores.totals, side="right")
    for row, count in zip(rows, better.tolist(), strict=True):
        nodes[row].rank = count + 1  # equal ones share it
    columns = [
        (each.plugin, each.raw.tolist(), each.normalized.tolist()) for each in scores.plugins
    ]
    for index, (row, total) in enumerate(zip(rows, scores.totals.tolist(), strict=True)):
        node = nodes[row]
        node.total = total
        node.scores = {
            plugin: {"raw": raw[index], "normalized": normalized[index]}
            for plugin, raw, normalized in columns
        }


# ---- one node

NOT_NAMED = (
    "kube-scheduler did not name it: its own filters rejected it, or it was outside of the sample"
)
NOT_KEPT = "the verdicts of this attempt are not kept any more, or were never given"
NOT_KNOWN = "there was no such node when the attempt was made"
NO_SCORE = "its total is not kept: it is not among the best"


class NodeView(Record, kw_only=True):
    """What an attempt, or a question, found out about a node.

    Attributes:
        time: When the attempt began; "" for a question.
        verdict: "unknown" if it is not kept.
        unresolvable: Whether evicting pods does not cure the rejection.
        cured_by: "capacity" if a new node would not be rejected.
        detail: Why there is no verdict, or no score.
        rank: The node's place in Moorage's order, from 1 on; 0 if it is not kept.
        tied: Whether others share the place.
        chosen: Whether the pod was bound to it.
    """

    time: str = ""
    node: str
    verdict: Literal["rejected", "feasible", "not named", "unknown"]
    plugin: str = ""
    reason: str = ""
    unresolvable: bool = False
    cured_by: str = ""
    rank: int = 0
    tied: bool = False
    score: NodeScoreRecord | None = None
    chosen: bool = False
    detail: str = ""


def view(decision: Decision, node: str, arrays: NodeArrays | None) -> NodeView:
    """Return what is known about a node; *arrays* if they are kept."""
    seen = NodeView(time=decision.time.isoformat(), node=node, verdict="unknown")
    seen.chosen = decision.bind is not None and decision.bind.node == node
    top = decision.score.top if decision.score else []
    seen.score = next((each for each in top if each.node == node), None)
    if seen.score is not None:
        _rank(seen, np.array([each.total for each in top]), seen.score.total)
    if arrays is not None:
        _judge(seen, arrays)
    elif seen.score or seen.chosen:
        seen.verdict = "feasible"
    else:
        seen.detail = decision.error or NOT_KEPT
    if seen.verdict == "feasible" and not seen.score and top:
        seen.detail = NO_SCORE
    return seen


def _judge(seen: NodeView, arrays: NodeArrays) -> None:
    row = arrays.row_of(seen.node)
    if row is None:
        is_known = seen.node in arrays.names or seen.node in arrays.names_after
        seen.verdict, seen.detail = ("not named", NOT_NAMED) if is_known else ("unknown", NOT_KNOWN)
        return
    verdict = arrays.verdicts.on(row) if arrays.verdicts is not None else "feasible"
    if verdict is None or verdict == "feasible":
        seen.verdict = "feasible"
        _score(seen, row, arrays)
    else:
        seen.verdict, seen.plugin, seen.reason = "rejected", verdict.plugin, verdict.text
        seen.unresolvable, seen.cured_by = verdict.unresolvable, verdict.cured_by


def _rank(seen: NodeView, totals: npt.NDArray[Any], total: float) -> None:
    seen.rank = int((totals > total).sum()) + 1
    seen.tied = int((totals == total).sum()) > 1


def _score(seen: NodeView, row: int, arrays: NodeArrays) -> None:
    scores = arrays.scores
    if scores is None or (index := scores.index_of(row)) is None:
        return
    total = scores.totals[index]
    _rank(seen, scores.totals, total)
    seen.score = NodeScoreRecord(
        node=seen.node,
        total=float(total),
        plugins=[
            PluginScoreRecord(
                plugin=each.plugin,
                raw=float(each.raw[index]),
                normalized=float(each.normalized[index]),
                weight=each.weight,
            )
            for each in scores.plugins
        ],
    )
