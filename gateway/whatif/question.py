"""What-if questions: a pod, a profile, and nodes that need not exist; read from requests."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gateway.cluster.state import ClusterState
from gateway.cycle import NodeSet
from gateway.edge.bodies import BadRequestError
from gateway.edge.requests import RequestReader, decoding
from gateway.policy.policy import PolicyHolder
from moorage.models import NodeManifest, Pod, decode_node, decode_pod

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
    entries = state.rows.entries
    profile = profile or pod.spec.scheduler_name
    if given is not None:
        different = [n for n in given if n.name not in entries or entries[n.name].manifest != n]
        return Question(
            pod=pod,
            pod_json=pod_json,
            profile=profile,
            names=list(dict.fromkeys(node.name for node in given)),
            given=different,
        )
    asked = list(entries) if names is None else list(dict.fromkeys(names))
    return Question(
        pod=pod,
        pod_json=pod_json,
        profile=profile,
        names=[name for name in asked if name in entries],
        unknown=[name for name in asked if name not in entries],
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
