"""What might be otherwise for a pod: weights, plugins that are off, more nodes; read from queries.

Nothing of it needs a second policy: weights add up what is normalised anyway, and a filter plugin
that is off is made up for by asking the others about the nodes that it rejected.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from multidict import MultiMapping

from gateway.cluster.state import ClusterState
from gateway.edge.bodies import BadRequestError
from gateway.whatif.answer import Answer
from moorage.models import NodeManifest
from moorage.v1 import scorer_pb2
from moorage_host.policy import KINDS, Kind, ResolvedPolicy

MOST_NODES = 100
"""Nodes that may be added."""

HEAVIEST = 1000
"""The largest weight."""

SHOWN = 5
"""Nodes of the ranking that a side shows."""

HOSTNAME = "kubernetes.io/hostname"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is otherwise.

    Attributes:
        weights: New weights of score plugins; 0 for those that are off.
        off: The filter plugins that are off.
        others: The filter plugins that are not, in order.
        nodes: The nodes that there are in addition.
    """

    weights: Mapping[str, int]
    off: frozenset[str]
    others: Sequence[str]
    nodes: Sequence[NodeManifest]


def read_change(
    query: MultiMapping[str], policy: ResolvedPolicy, profile: str, state: ClusterState
) -> Change:
    """Read `?weight=PLUGIN:N&off=PLUGIN&nodes=N&like=NODE`.

    Raises:
        BadRequestError: What is wrong, and what would be right.
    """
    if unknown := set(query) - {"weight", "off", "nodes", "like"}:
        raise BadRequestError(f"there is no parameter {min(unknown)[:100]}")
    filters, scores = (plugins_of(policy, kind, profile) for kind in KINDS[:2])
    weights: dict[str, int] = {}
    for text in query.getall("weight", ()):
        plugin, _, number = text.rpartition(":")
        _require(plugin, scores)
        weights[plugin] = _number(number, "a weight", HEAVIEST)
    off = query.getall("off", ())
    for plugin in off:
        _require(plugin, [*filters, *scores])
    weights |= {plugin: 0 for plugin in off if plugin in scores}
    return Change(
        weights=weights,
        off=frozenset(off).intersection(filters),
        others=[plugin for plugin in filters if plugin not in off],
        nodes=_more(query, state),
    )


def reweighed(scored: scorer_pb2.ScoreResponse, weights: Mapping[str, int]) -> None:
    """Give plugins other weights, and order the nodes by the totals that follow."""
    if not weights:
        return
    nodes = list(scored.nodes)
    for node in nodes:
        for each in node.plugins:
            each.weight = weights.get(each.plugin, each.weight)
        kept = [each for each in node.plugins if each.weight]
        total = sum(each.weight * each.normalized for each in kept)
        node.total = total / (sum(each.weight for each in kept) or 1)
        del node.plugins[:]
        node.plugins.extend(kept)
    nodes.sort(key=lambda node: -node.total)
    del scored.nodes[:]
    if any(node.plugins for node in nodes):  # else no plugin has an opinion
        scored.nodes.extend(nodes)


def side(answer: Answer) -> dict[str, Any]:
    """Return what people compare of an answer, in few bytes."""
    rejected = Counter((each.plugin, each.reason) for each in answer.rejected)
    best = answer.claim.node if answer.claim else ""
    if not best and answer.ranking:
        best = answer.ranking[0].node
    if not best and len(answer.feasible) == 1:
        (best,) = answer.feasible
    return {
        "words": answer.words,
        "nodes": answer.nodes,
        "feasible": len(answer.feasible),
        "best": best,
        "top": msgspec.to_builtins(answer.ranking[:SHOWN]),
        "rejected": [
            {"plugin": plugin, "reason": reason, "nodes": nodes}
            for (plugin, reason), nodes in rejected.most_common()
        ],
    }


def plugins_of(policy: ResolvedPolicy, kind: Kind, profile: str) -> Mapping[str, int]:
    """Return the plugins of a profile in their order, each with its weight."""
    found = policy.policies[kind].profile(profile)
    return {each.name: each.weight for each in found.plugins} if found else {}


def _require(plugin: str, known: Collection[str]) -> None:
    if plugin not in known:
        raise BadRequestError(
            f"the profile has no such plugin {plugin[:100]}; it has {', '.join(known) or 'none'}"
        )


def _number(text: str, what: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= most):
        raise BadRequestError(f"{text[:40]} is not {what} from 0 to {most}")
    return int(text)


def _more(query: MultiMapping[str], state: ClusterState) -> Sequence[NodeManifest]:
    """Return the nodes to add: empty copies of one."""
    count = _number(query.get("nodes") or "0", "a number of nodes", MOST_NODES)
    entry = state.rows.entries.get(query.get("like", ""))
    if not count:
        return ()
    if entry is None:
        raise BadRequestError(
            f"there is no node {query.get('like', '')[:100]} to copy: name `like`"
        )
    copied = entry.manifest
    names = [f"{copied.name}-new-{number}" for number in range(1, count + 1)]
    return [
        replace(
            copied,
            metadata=replace(
                copied.metadata, name=name, labels={**copied.metadata.labels, HOSTNAME: name}
            ),
        )
        for name in names
        if name not in state.rows.entries
    ]
