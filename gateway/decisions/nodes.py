"""The nodes of one attempt: what it has to say about one of them, and all of them as a table."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from gateway.cycle.decision import Decision, NodeScoreRecord, PluginScoreRecord, Record
from gateway.cycle.nodes import rows_of
from gateway.cycle.scores import Scores
from gateway.decisions.arrays import NodeArrays
from gateway.decisions.query import BadQueryError, Parameters, checked, number

DEFAULT_LIMIT = 100
MOST = 100_000
"""Nodes in an answer."""

COLUMNS = ("rank", "total", "node", "verdict", "plugin", "reason")


class NodeScore(Record, omit_defaults=False):
    """A plugin's opinion of a node."""

    raw: float
    normalized: float


class NodeItem(Record, omit_defaults=False):
    """A node in the table.

    Attributes:
        plugin: The one that rejected it, and why.
        rank: Its place in Moorage's order, from 1 on; None without a total.
        scores: By plugin.
    """

    node: str
    verdict: Literal["feasible", "rejected"]
    plugin: str = ""
    reason: str = ""
    rank: int | None = None
    total: float | None = None
    scores: dict[str, NodeScore] = msgspec.field(default_factory=dict)


class NodeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes are wanted: those whose name, plugin or reason contains *search*."""

    search: str = ""
    sort: str = "rank"
    descending: bool = False
    limit: int = DEFAULT_LIMIT
    offset: int = 0


def node_query(parameters: Parameters) -> NodeQuery:
    """Return what is asked for; raises BadQueryError."""
    values = checked(parameters, ("search", "sort", "order", "limit", "offset"))
    order = values.get("order", "asc")
    if order not in ("asc", "desc"):
        raise BadQueryError(f"order is asc or desc, not {order[:100]}")
    return NodeQuery(
        search=values.get("search", "").lower(),
        sort=values.get("sort", "rank"),
        descending=order == "desc",
        limit=number(values, "limit", DEFAULT_LIMIT, least=1, most=MOST),
        offset=number(values, "offset", 0, least=0, most=MOST),
    )


def node_table(arrays: NodeArrays, query: NodeQuery) -> dict[str, Any]:
    """Return a part of the table as JSON-like content; raises BadQueryError."""
    plugins = arrays.scores.plugins if arrays.scores is not None else ()
    key = _sort_key(query.sort, [each.plugin for each in plugins])
    nodes = [node for node in nodes_of(arrays) if _contains(node, query.search)]
    nodes.sort(key=lambda node: node.node)
    nodes.sort(key=key, reverse=query.descending)
    reasons = arrays.verdicts.reasons if arrays.verdicts is not None else ()
    return {
        "total": len(nodes),
        "plugins": {
            "filter": list(dict.fromkeys(reason.plugin for reason in reasons)),
            "score": [{"plugin": each.plugin, "weight": each.weight} for each in plugins],
        },
        "items": nodes[query.offset : query.offset + query.limit],
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


def _add_scores(nodes: Mapping[int, NodeItem], scores: Scores) -> None:
    rows: list[int] = rows_of(scores.bitmap).tolist()
    best_first = (-scores.totals).argsort(kind="stable").tolist()
    for rank, index in enumerate(best_first, start=1):
        nodes[rows[index]].rank = rank
    columns = [
        (each.plugin, each.raw.tolist(), each.normalized.tolist()) for each in scores.plugins
    ]
    for index, (row, total) in enumerate(zip(rows, scores.totals.tolist(), strict=True)):
        node = nodes[row]
        node.total = total
        node.scores = {
            plugin: NodeScore(raw=raw[index], normalized=normalized[index])
            for plugin, raw, normalized in columns
        }


def _contains(node: NodeItem, text: str) -> bool:
    return not text or any(text in each.lower() for each in (node.node, node.plugin, node.reason))


def _sort_key(column: str, plugins: list[str]) -> Callable[[NodeItem], Any]:
    if column == "rank":
        return lambda node: math.inf if node.rank is None else node.rank
    if column == "total":
        return lambda node: -math.inf if node.total is None else node.total
    if column in COLUMNS:
        return lambda node: getattr(node, column)
    if column in plugins:
        return lambda node: node.scores[column].normalized if node.scores else -math.inf
    known = ", ".join((*COLUMNS, *plugins))
    raise BadQueryError(f"sort is one of {known}, not {column[:100]}")


# ---- one node

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
