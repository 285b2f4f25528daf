"""Reads the bodies of extender calls, only as far as they are needed.

Bodies written by Go take one pass. Everything else is given Go's casing first
(`gateway.edge.casing`) and read again, which also finds the words for what is wrong with it.

A prioritize call brings the pod of the filter call before it, and the names that this was answered
with; a caller that sends whole nodes sends mostly the same ones again. So the newest are kept by
their text: comparing 200 kB takes a fraction of the time of reading them again.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from gateway.cycle import Cycle, GivenNode, NodeSet
from gateway.edge import casing
from gateway.edge.bodies import BadRequestError
from moorage.models import NodeManifest, Pod, decode_node, decode_passing_pod, decode_pod
from moorage.models.decoding import MAX_CONSTRAINTS, constraints_size

_OPENING, _NAMES_MODE = b'{"Pod":', b',"Nodes":null,"NodeNames":'
_NULL = msgspec.Raw(b"null")
_KEPT = 4  # pods: one for each scheduler that may be between two calls; twice as many name arrays
T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, has wrong types, or is nested too deeply."""

POD_LIMIT = 4 << 20
"""Bytes of the largest pod; the API server takes none of more than 3 MiB."""

AT_ONCE = 1 << 18
"""Bytes of a list that are decoded in one go, in about 5 ms."""


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
    """The pods to evict from a node by UID, the most important first, as answers have them too."""

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


class RequestReader:
    """Reads bodies, and recognises what the newest calls had.

    Args:
        nodes_kept: How many whole nodes of one call are recognised in the next. Up to twice as many
            manifests are held, 25 kB each when they list 50 images.
    """

    def __init__(self, nodes_kept: int) -> None:
        self._nodes_kept = nodes_kept
        self._pods: dict[bytes, Pod] = {}
        self._names: dict[bytes, NodeSet] = {}
        self._recent: dict[int, NodeManifest] = {}
        self._older: dict[int, NodeManifest] = {}

    async def scheduling(
        self,
        body: bytes,
        *,
        plugin: str = "",
        deadline: float = 0.0,
        caller: str = "",
        profiles: frozenset[str] | None = None,
    ) -> Cycle:
        """Read a filter or prioritize call; raises BadRequestError."""
        pod_json, names = b"", b""
        # kube-scheduler's bodies end with the names. When what is before and after the cut are both
        # JSON, the whole is: cutting spares one pass over the pod and the names, or two if known.
        cut = body.find(_NAMES_MODE) if body.startswith(_OPENING) and body.endswith(b"]}") else -1
        if cut > 0:
            pod_json, names = body[len(_OPENING) : cut], body[cut + len(_NAMES_MODE) : -1]
        pod, nodes = self._pods.get(pod_json), self._names.get(names)
        if pod is None or nodes is None:
            found = cut > 0 and self._split(pod_json, names)
            pod, pod_json, nodes = found or await self._whole(body)
        return Cycle(
            pod=pod,
            pod_json=pod_json,
            nodes=nodes,
            plugin=plugin,
            deadline=deadline,
            caller=caller,
            profiles=profiles,
        )

    def keep(self, nodes: NodeSet) -> None:
        """Expect to read the array of the names of these nodes soon."""
        _keep(self._names, nodes.encoded, nodes, 2 * _KEPT)

    async def preempt(self, body: bytes) -> tuple[Pod, bytes, dict[str, MetaVictims]]:
        """Read a preempt call: the pod, its JSON and victims by node; raises BadRequestError."""
        args = _read_preemption_args(body)
        pod_json = bytes(args.Pod)
        pod = self._pods.get(pod_json) or self._pod(pod_json)
        if args.NodeNameToVictims is not None:
            victims = {
                node: await _full_victims(node, given)
                for node, given in args.NodeNameToVictims.items()
            }
        elif args.NodeNameToMetaVictims is not None:
            victims = args.NodeNameToMetaVictims
        else:
            raise BadRequestError(
                "the call has neither NodeNameToVictims nor NodeNameToMetaVictims"
            )
        return pod, pod_json, victims

    def _split(self, pod_json: bytes, names: bytes) -> tuple[Pod, bytes, NodeSet] | None:
        with suppress(BadRequestError, *_UNREADABLE):
            nodes = self._names.get(names)
            if nodes is None:
                nodes = self._named(names)
            return self._pods.get(pod_json) or self._pod(pod_json), pod_json, nodes
        return None

    async def _whole(self, body: bytes) -> tuple[Pod, bytes, NodeSet]:
        args = _read_extender_args(body)
        pod_json = bytes(args.Pod)
        names = None
        if args.NodeNames != _NULL:
            encoded = bytes(args.NodeNames)
            with decoding("$.NodeNames"):
                names = self._names.get(encoded) or self._named(encoded)
        pod = self._pods.get(pod_json) or self._pod(pod_json)
        nodes = None if args.Nodes is None else await self._given(args.Nodes.items or [])
        if nodes is None:
            if names is None:
                raise BadRequestError("the call has neither NodeNames nor Nodes")
            return pod, pod_json, names
        if names is None:
            return pod, pod_json, NodeSet(list(nodes), given=list(nodes.values()), is_named=False)
        if nodes.keys() != set(names.names):
            raise BadRequestError("the call has both NodeNames and Nodes, but for different nodes")
        given = [nodes[name] for name in names.names]
        return pod, pod_json, NodeSet(names.names, encoded=names.encoded, given=given)

    def _named(self, encoded: bytes) -> NodeSet:
        nodes = NodeSet(_decode_names(encoded), encoded=encoded)
        self.keep(nodes)
        return nodes

    def _pod(self, encoded: bytes) -> Pod:
        if len(encoded) > POD_LIMIT:
            problem = f"the pod has more than {POD_LIMIT} bytes"
            raise BadRequestError(problem, reason="large_pod")
        try:
            pod = decode_passing_pod(encoded)
        except _UNREADABLE as error:
            raise _bad_request(error, "$.Pod") from error
        if constraints_size(pod) > MAX_CONSTRAINTS:
            raise BadRequestError(
                f"the pod's node selector, affinities, tolerations and spread constraints have "
                f"more than {MAX_CONSTRAINTS} bytes",
                reason="large_pod",
            )
        if not pod.metadata.name or not pod.metadata.uid:
            field = "name" if not pod.metadata.name else "uid"
            raise _empty(f"$.Pod.metadata.{field}")
        _keep(self._pods, encoded, pod, _KEPT)
        return pod

    async def _given(self, items: list[msgspec.Raw]) -> dict[str, GivenNode]:
        """Decode whole nodes. Unchanged ones keep their manifest: hashing takes a tenth of it."""
        manifests = await _decode_each(self._node, items, "$.Nodes.items[{}]".format)
        return {
            manifest.metadata.name: GivenNode(manifest=manifest, raw=item)
            for manifest, item in zip(manifests, items, strict=True)
        }

    def _node(self, text: msgspec.Raw) -> NodeManifest:
        encoded = bytes(text)
        # 64 bits of SipHash under this process's secret key.
        key = hash(encoded)
        manifest = self._recent.get(key)
        if manifest is None:
            encoded.decode()  # the answer repeats it, also what decoding skips
            manifest = self._older.pop(key, None) or decode_node(text)
            if not manifest.metadata.name:
                raise msgspec.ValidationError("The name is empty - at `$.metadata.name`")
            if len(self._recent) >= self._nodes_kept:
                self._recent, self._older = {}, self._recent
            self._recent[key] = manifest
        return manifest


def read_binding(body: bytes) -> BindingArgs:
    """Read a bind call; raises BadRequestError."""
    args = _read_binding_args(body)
    for name in BindingArgs.__struct_fields__:
        if not getattr(args, name):
            raise _empty(f"$.{name}")
    return args


def _keep(newest: dict[bytes, T], key: bytes, value: T, most: int) -> None:
    newest[key] = value
    if len(newest) > most:
        del newest[next(iter(newest))]


_decode_names = msgspec.json.Decoder(list[str]).decode


def _reader(kind: type[StructT], rewrite: casing.Rewrite) -> Callable[[bytes], StructT]:
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> StructT:
        with suppress(*_UNREADABLE):
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


async def _full_victims(node: str, victims: FullVictims) -> MetaVictims:
    path = f"$.NodeNameToVictims[{node!r}].Pods[{{}}]".format
    pods = await _decode_each(decode_pod, victims.Pods or [], path)
    for index, pod in enumerate(pods):
        if not pod.metadata.uid:
            raise _empty(path(index) + ".metadata.uid")
    return MetaVictims([MetaPod(pod.metadata.uid) for pod in pods], victims.NumPDBViolations)


async def _decode_each(
    decode: Callable[[msgspec.Raw], T], raws: Iterable[msgspec.Raw], path: Callable[[int], str]
) -> list[T]:
    """Decode a list; BadRequestError names the item that failed by `path` of its index.

    Other calls go on between the parts of a long list, and its own call may be given up there.
    """
    decoded: list[T] = []
    size = 0
    try:
        for raw in raws:
            decoded.append(decode(raw))
            size += len(memoryview(raw))
            if size > AT_ONCE:
                size = 0
                await asyncio.sleep(0)
    except _UNREADABLE as error:
        raise _bad_request(error, path(len(decoded))) from error
    return decoded


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn decoding errors inside into BadRequestError, with paths that start at `path`."""
    try:
        yield
    except _UNREADABLE as error:
        raise _bad_request(error, path) from error


def _bad_request(error: Exception, path: str) -> BadRequestError:
    if isinstance(error, RecursionError):
        return BadRequestError(f"JSON is nested too deeply - at `{path}`", reason="malformed")
    if not isinstance(error, msgspec.ValidationError):
        return BadRequestError(f"{error} - at `{path}`", reason="malformed")
    problem, _, inner = str(error).partition(" - at `$")
    return BadRequestError(f"{problem} - at `{path}{inner.rstrip('`')}`")


def _empty(path: str) -> BadRequestError:
    return BadRequestError(f"`{path}` is empty")
