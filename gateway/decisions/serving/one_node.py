"""What a decision has to say about one node: `GET /decisions/NAMESPACE/POD?node=NAME`."""

from typing import Any, Literal

import msgspec

from gateway.decisions.attempts.arrays import NodeArrays
from gateway.decisions.records import Decision, NodeScoreRecord, PluginScoreRecord, Record

NOT_NAMED = (
    "kube-scheduler did not name it: its own filters rejected it, or it was outside of the sample"
)
NOT_KEPT = "the verdicts of this attempt are not kept any more, or were never given"
NOT_KNOWN = "there was no such node when the attempt was made"
NO_SCORE = "its total is not kept: it is not among the best, see --decision-top"


class NodeView(Record):
    """What an attempt found out about a node.

    Attributes:
        verdict: "unknown" if it is not kept.
        detail: Why there is no verdict, or no score.
        rank: The node's place in Moorage's order, from 1 on; 0 if it is not kept.
        chosen: Whether the pod was bound to it.
    """

    time: str
    node: str
    verdict: Literal["rejected", "feasible", "not named", "unknown"]
    plugin: str = ""
    reason: str = ""
    unresolvable: bool = False
    rank: int = 0
    score: NodeScoreRecord | None = None
    chosen: bool = False
    detail: str = ""


def view(decision: Decision, node: str, arrays: NodeArrays | None) -> dict[str, Any]:
    """Return what is known about a node, as JSON-like content; *arrays* if they are kept."""
    seen = NodeView(time=decision.time.isoformat(), node=node, verdict="unknown")
    seen.chosen = decision.bind is not None and decision.bind.node == node
    top = decision.score.top if decision.score else []
    seen.rank, seen.score = next(
        ((rank, each) for rank, each in enumerate(top, start=1) if each.node == node), (0, None)
    )
    if arrays is not None:
        _judge(seen, arrays)
    elif seen.score or seen.chosen:
        seen.verdict = "feasible"
    else:
        seen.detail = decision.error or NOT_KEPT
    if seen.verdict == "feasible" and not seen.score and top:
        seen.detail = NO_SCORE
    content: dict[str, Any] = msgspec.to_builtins(seen)
    return content


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
        seen.unresolvable = verdict.unresolvable


def _score(seen: NodeView, row: int, arrays: NodeArrays) -> None:
    scores = arrays.scores
    if scores is None or (index := scores.index_of(row)) is None:
        return
    total = scores.totals[index]
    before = (scores.totals > total).sum() + (scores.totals[:index] == total).sum()
    seen.rank = int(before) + 1
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
