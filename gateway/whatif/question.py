"""What-if questions, read from requests: a pod, a profile, nodes that need not exist, and changes.

Changes are weights, plugins that are off, more nodes. They need no second policy: weights add up
what is normalised anyway, and a filter plugin that is off is made up for by asking the others about
the nodes that it rejected.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from multidict import MultiMapping

from gateway.cluster.state import ClusterState
from gateway.cycle import NodeSet
from gateway.decisions.advice import HOSTNAME
from gateway.edge.bodies import BadRequestError
from gateway.edge.requests import RequestReader, decoding
from gateway.policy.policy import PolicyHolder
from moorage.models import NodeManifest, Pod, decode_node, decode_pod
from moorage.v1 import scorer_pb2
from moorage_host.policy import KINDS, Kind, ResolvedPolicy

NO_UID = "simulated"
"""The uid of a pod that has none: no pod of the cluster has it."""


class Question(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is asked.

    Attributes:
        pod: The pod.
        pod_json: The same as JSON.
        profile: The profile whose plugins are asked.
        names: The nodes, in order, without those that nobody knows.
        unknown: Nodes of the question that the cluster does not have.
        given: Those nodes that came with the question and differ from the cluster's.
    """

    pod: Pod
    pod_json: bytes
    profile: str
    names: Sequence[str]
    unknown: Sequence[str] = ()
    given: Sequence[NodeManifest] = ()


def _about(
    state: ClusterState,
    pod: Pod,
    pod_json: bytes,
    *,
    profile: str = "",
    names: Iterable[str] | None = None,
    given: Sequence[NodeManifest] | None = None,
) -> Question:
    """Return a question about *names* or *given* nodes, or else about all nodes of the cluster."""
    entries, different = state.rows.entries, list[NodeManifest]()
    if given is not None:
        different = [n for n in given if n.name not in entries or entries[n.name].manifest != n]
        names = [node.name for node in given]
    asked = entries if names is None else dict.fromkeys(names)
    known = entries if given is None else asked
    return Question(
        pod=pod,
        pod_json=pod_json,
        profile=profile or pod.spec.scheduler_name,
        names=[name for name in asked if name in known],
        unknown=[name for name in asked if name not in known],
        given=different,
    )


class SimulateRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `POST /simulate`.

    Attributes:
        pod: A manifest.
        nodes: Names of nodes, or manifests; by default all nodes of the cluster.
        profile: By default that of the pod's schedulerName.
    """

    pod: msgspec.Raw
    nodes: list[msgspec.Raw] | None = None
    profile: str = ""


async def extender_question(state: ClusterState, body: bytes) -> tuple[Question, NodeSet]:
    """Read ExtenderArgs; nothing of it is kept for the next call. Raises BadRequestError."""
    request = await RequestReader(nodes_kept=0).scheduling(body)
    nodes = request.nodes
    given = None if nodes.given is None else [each.manifest for each in nodes.given]
    question = _about(state, request.pod, request.pod_json, names=nodes.names, given=given)
    return question, nodes


async def read_question(state: ClusterState, policy: PolicyHolder, body: bytes) -> Question:
    """Read the body of `POST /simulate`; raises BadRequestError."""
    # Live pods do not wait for a large one.
    asked, pod, pod_json, (names, given) = await asyncio.to_thread(_read, body)
    profile = asked.profile or pod.spec.scheduler_name
    resolved = policy.resolved
    if resolved is not None and profile not in policy.profiles:
        raise BadRequestError(
            f"there is no profile `{profile}`; name one of these as `profile`, or as the "
            f"pod's schedulerName: {', '.join(resolved.profile_names)}"
        )
    return _about(state, pod, pod_json, profile=profile, names=names, given=given)


Nodes = tuple[list[str] | None, list[NodeManifest] | None]
"""Names of nodes, or manifests; neither for all nodes of the cluster."""


def _read(body: bytes) -> tuple[SimulateRequest, Pod, bytes, Nodes]:
    with decoding("$"):
        request = msgspec.json.decode(body, type=SimulateRequest)
    with decoding("$.pod"):
        content: Any = msgspec.json.decode(request.pod)
        if not isinstance(content, dict):
            raise msgspec.ValidationError("Expected `object` - at `$`")
        metadata = content.setdefault("metadata", {})
        if isinstance(metadata, dict):
            metadata["uid"] = metadata.get("uid") or NO_UID
            metadata["name"] = metadata.get("name") or NO_UID
        pod_json = msgspec.json.encode(content)
        pod = decode_pod(pod_json)
    return request, pod, pod_json, _nodes(request.nodes)


def _nodes(items: list[msgspec.Raw] | None) -> Nodes:
    """Read names or manifests; not both."""
    if items is None:
        return None, None
    names: list[str] = []
    given: list[NodeManifest] = []
    for index, item in enumerate(items):
        with decoding(f"$.nodes[{index}]"):
            if bytes(item).lstrip().startswith(b'"'):
                names.append(msgspec.json.decode(item, type=str))
                continue
            node = decode_node(bytes(item))
            if not node.name:
                raise msgspec.ValidationError("The name is empty - at `$.metadata.name`")
            given.append(node)
    if names and given:
        raise BadRequestError("`$.nodes` has names and manifests: give one of them")
    return (None, given) if given else (names, None)


MOST_NODES = 100
"""Nodes that may be added."""

HEAVIEST = 1000
"""The largest weight."""


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
