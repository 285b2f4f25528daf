"""What a decision has to say about one node: `GET /decisions/NAMESPACE/POD?node=NAME`."""

from typing import Any, Literal

import msgspec

from gateway.decisions.records import Decision, NodeScoreRecord, Record
from gateway.decisions.verdicts import NodeVerdicts, Reason

NOT_NAMED = (
    "kube-scheduler did not name it: its own filters rejected it, or it was outside of the sample"
)
NOT_KEPT = "the verdicts of this attempt are not kept any more, or were never given"
NEWER = "the node is newer than the attempt, or gone"
NOT_IN_TOP = "its total is not kept: it is not among the best, see --decision-top"


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


def view(
    decision: Decision, node: str, row: int | None, verdicts: NodeVerdicts | None
) -> dict[str, Any]:
    """Return what is known about a node, as JSON-like content.

    Args:
        decision: The attempt.
        node: The node's name.
        row: The row that it had then; None if it is not known.
        verdicts: The verdicts of the attempt, if they are kept.
    """
    seen = NodeView(time=decision.time.isoformat(), node=node, verdict="unknown")
    seen.chosen = decision.bind is not None and decision.bind.node == node
    top = decision.score.top if decision.score else []
    seen.rank, seen.score = next(
        ((rank, each) for rank, each in enumerate(top, start=1) if each.node == node), (0, None)
    )
    if seen.score or seen.chosen:
        seen.verdict = "feasible"
    elif verdicts is None:
        seen.detail = decision.error or NOT_KEPT
    elif row is None:
        seen.detail = NEWER
    else:
        _judge(seen, verdicts.on(row))
    if seen.verdict == "feasible" and not seen.score and top:
        seen.detail = NOT_IN_TOP
    content: dict[str, Any] = msgspec.to_builtins(seen)
    return content


def _judge(seen: NodeView, verdict: Reason | Literal["feasible"] | None) -> None:
    if verdict is None:
        seen.verdict, seen.detail = "not named", NOT_NAMED
    elif verdict == "feasible":
        seen.verdict = "feasible"
    else:
        seen.verdict, seen.plugin, seen.reason = "rejected", verdict.plugin, verdict.text
        seen.unresolvable = verdict.unresolvable
