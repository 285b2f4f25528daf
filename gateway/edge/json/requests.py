"""Reads the bodies of extender calls, only as far as they are needed.

Bodies written by Go take one pass. Everything else is given Go's casing first
(`gateway.edge.json.casing`) and read again, which also finds the words for what is wrong with it.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from gateway.calls import CycleRequest, GivenNode, NodeSet, Victims
from gateway.edge.json import casing
from gateway.edge.json.errors import UNREADABLE, BadRequestError, decode_each, decoding
from gateway.edge.json.names import NodeNamesCache
from gateway.edge.json.nodes import GivenNodesCache
from moorage.models import Pod, decode_passing_pod, decode_pod

_OPENING, _NAMES_MODE = b'{"Pod":', b',"Nodes":null,"NodeNames":'
_NULL = msgspec.Raw(b"null")
_PODS_KEPT = 4  # one for each scheduler that may be between filter and prioritize
T = TypeVar("T", bound=msgspec.Struct)


class NodeList(msgspec.Struct):
    """A list of nodes, each as its JSON."""

    items: list[msgspec.Raw] | None = None


class ExtenderArgs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a filter or prioritize call, as Go names it."""

    Pod: msgspec.Raw
    Nodes: NodeList | None = None
    NodeNames: msgspec.Raw = _NULL


class BindingArgs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a bind call."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


class MetaPod(msgspec.Struct):
    """A victim, by UID."""

    UID: str


class MetaVictims(msgspec.Struct):
    """The victims on a node, by UID."""

    Pods: list[MetaPod] | None = None
    NumPDBViolations: int = 0


class FullVictims(msgspec.Struct):
    """The victims on a node, as whole pods."""

    Pods: list[msgspec.Raw] | None = None
    NumPDBViolations: int = 0


class PreemptionArgs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a preempt call."""

    Pod: msgspec.Raw
    NodeNameToVictims: dict[str, FullVictims] | None = None
    NodeNameToMetaVictims: dict[str, MetaVictims] | None = None


class PodCache:
    """Reads pods, and recognises the newest: prioritize brings the pod of the filter call."""

    def __init__(self, limit: int) -> None:
        """Read pods of at most *limit* bytes."""
        self._limit = limit
        self._newest: deque[tuple[bytes, Pod]] = deque(maxlen=_PODS_KEPT)

    def read(self, encoded: bytes) -> Pod:
        """Read a pod; raises BadRequestError."""
        for known, pod in self._newest:
            if known == encoded:
                return pod
        pod = self.read_once(msgspec.Raw(encoded))
        self._newest.append((encoded, pod))
        return pod

    def read_once(self, raw: msgspec.Raw) -> Pod:
        """Read a pod that no further call brings; raises BadRequestError."""
        if len(memoryview(raw)) > self._limit:
            raise BadRequestError(f"the pod has more than {self._limit} bytes", reason="large_pod")
        with decoding("$.Pod"):
            pod = decode_passing_pod(raw)
        _require(pod.metadata.name, "$.Pod.metadata.name")
        _require(pod.metadata.uid, "$.Pod.metadata.uid")
        return pod


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCaches:
    """What is recognised from one call to the next, instead of being decoded again."""

    names: NodeNamesCache
    nodes: GivenNodesCache
    pods: PodCache


async def read_scheduling(
    body: bytes, caches: RequestCaches, plugin: str, deadline: float, caller: str = ""
) -> CycleRequest:
    """Read a filter or prioritize call; raises BadRequestError."""
    pod, pod_json, nodes = _split(body, caches) or await _whole(body, caches)
    return CycleRequest(
        pod=pod,
        pod_json=pod_json,
        nodes=nodes,
        plugin=plugin,
        deadline=deadline,
        caller=caller,
    )


_Parts = tuple[Pod, bytes, NodeSet]


def _split(body: bytes, caches: RequestCaches) -> _Parts | None:
    # kube-scheduler's bodies end with the names. When what is before and after the cut are both
    # JSON, the whole is: cutting spares one pass over the pod and the names, or two if known.
    cut = body.find(_NAMES_MODE) if body.startswith(_OPENING) and body.endswith(b"]}") else -1
    if cut > 0:
        with suppress(BadRequestError, *UNREADABLE):
            pod_json = body[len(_OPENING) : cut]
            nodes = caches.names.read(body[cut + len(_NAMES_MODE) : -1])
            return caches.pods.read(pod_json), pod_json, nodes
    return None


async def _whole(body: bytes, caches: RequestCaches) -> _Parts:
    args = _read_extender_args(body)
    with decoding("$.NodeNames"):
        is_named = not _is_null(args.NodeNames)
        names = caches.names.read(bytes(args.NodeNames)) if is_named else None
    pod_json = bytes(args.Pod)
    pod = caches.pods.read(pod_json)
    nodes = None if args.Nodes is None else await caches.nodes.read(args.Nodes.items or [])
    if names is None and nodes is None:
        raise BadRequestError("the call has neither NodeNames nor Nodes")
    if nodes is None:
        assert names is not None  # noqa: S101 - checked above
        return pod, pod_json, names
    if names is None:
        return pod, pod_json, NodeSet(list(nodes), given=list(nodes.values()), is_named=False)
    given = _aligned(nodes, names)
    return pod, pod_json, NodeSet(names.names, encoded=names.encoded, given=given)


def read_binding(body: bytes) -> BindingArgs:
    """Read a bind call; raises BadRequestError."""
    args = _read_binding_args(body)
    for name in BindingArgs.__struct_fields__:
        _require(getattr(args, name), f"$.{name}")
    return args


async def read_preempt(body: bytes, caches: RequestCaches) -> tuple[Pod, bytes, dict[str, Victims]]:
    """Read a preempt call: the pod, its JSON and the victims by node; raises BadRequestError."""
    args = _read_preemption_args(body)
    pod = caches.pods.read_once(args.Pod)
    if args.NodeNameToVictims is not None:
        victims = {node: await _full(node, given) for node, given in args.NodeNameToVictims.items()}
    elif args.NodeNameToMetaVictims is not None:
        victims = {node: _meta(given) for node, given in args.NodeNameToMetaVictims.items()}
    else:
        raise BadRequestError("the call has neither NodeNameToVictims nor NodeNameToMetaVictims")
    return pod, bytes(args.Pod), victims


def _reader(kind: type[T], rewrite: casing.Rewrite) -> Callable[[bytes], T]:
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        with suppress(*UNREADABLE):
            return decode(body)
        with decoding("$"):
            return decode(rewrite(msgspec.Raw(body.strip())))

    return read


def _known(kind: type[msgspec.Struct], **inner: casing.Rewrite) -> casing.Rewrite:
    return casing.fields(dict.fromkeys(kind.__struct_fields__, casing.verbatim) | inner)


_read_extender_args = _reader(ExtenderArgs, _known(ExtenderArgs))
_read_binding_args = _reader(BindingArgs, _known(BindingArgs))
_meta_victims = casing.values(_known(MetaVictims, Pods=casing.items(_known(MetaPod))))
_read_preemption_args = _reader(
    PreemptionArgs,
    _known(
        PreemptionArgs,
        NodeNameToVictims=casing.values(_known(FullVictims)),
        NodeNameToMetaVictims=_meta_victims,
    ),
)


def _is_null(value: msgspec.Raw) -> bool:
    return len(memoryview(value)) == len(b"null") and bytes(value) == b"null"


def _aligned(nodes: dict[str, GivenNode], names: NodeSet) -> list[GivenNode]:
    if nodes.keys() != set(names.names):
        raise BadRequestError("the call has both NodeNames and Nodes, but for different nodes")
    return [nodes[name] for name in names.names]


def _meta(victims: MetaVictims) -> Victims:
    uids = [pod.UID for pod in victims.Pods or []]
    return Victims(uids=uids, num_pdb_violations=victims.NumPDBViolations)


async def _full(node: str, victims: FullVictims) -> Victims:
    path = f"$.NodeNameToVictims[{node!r}].Pods[{{}}]".format
    pods = await decode_each(decode_pod, victims.Pods or [], path)
    for index, pod in enumerate(pods):
        _require(pod.metadata.uid, path(index) + ".metadata.uid")
    uids = [pod.metadata.uid for pod in pods]
    return Victims(uids=uids, num_pdb_violations=victims.NumPDBViolations, pods=pods)


def _require(value: str, path: str) -> None:
    if not value:
        raise BadRequestError(f"`{path}` is empty")
