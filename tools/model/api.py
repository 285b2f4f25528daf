"""An API server of a few lines, whose answers and watch events a test holds back."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage import Binding
from moorage.models import NodeManifest, Pod, decode_node, decode_pod, encode
from moorage.models.base import read_only
from moorage_host.kube import KubeStatusError, KubeUnreachableError
from services.binder.cluster import PodClient

KINDS = ("claims", "checks", "devices")
"""The profiles: pods of each are one on a node, the first kind by claims, the second without.

Of the third, each pod has one of its node's `DEVICES` for itself, half of them by claims.
"""

DEVICES = ("a", "b")

DEVICE = "example.com/device"

LATENCY = 0.002
"""Each way of a POST takes so long."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a watch shows: a node or a pod, or what it was called."""

    node: NodeManifest | None = None
    pod: Pod | None = None
    gone_node: str = ""
    gone_pod: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """A Binding that was accepted."""

    uid: str
    node: str
    epoch: int


@dataclass
class Api:
    """The truth.

    Attributes:
        created: Each pod as it was created, also when it is gone.
        fenced: The highest epoch whose barrier has been answered.
        late: POSTs of lower epochs that were sent after that.
        faults: How the next Binding of a pod goes, by its uid.
        dark: The uids of pods that cannot be read.
        held: POSTs that wait to be let go, and whether each is then done.
    """

    nodes: dict[str, NodeManifest] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    created: dict[str, Pod] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    fenced: int = 0
    late: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    dark: set[str] = field(default_factory=set)
    held: list[asyncio.Event] = field(default_factory=list)

    def add_node(self, name: str) -> None:
        node = decode_node(msgspec.json.encode({"metadata": {"name": name}}))
        self.nodes[name] = node
        self.events.append(Event(node=node))

    def remove_node(self, name: str) -> None:
        """Drain a node: its pods go first."""
        for uid in [uid for uid, pod in self.pods.items() if pod.spec.node_name == name]:
            self.remove_pod(uid)
        del self.nodes[name]
        self.events.append(Event(gone_node=name))

    def add_pod(self, name: str, kind: str) -> Pod:
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        pod = decode_pod(msgspec.json.encode({"metadata": metadata, "spec": _spec(kind, "")}))
        self.pods[pod.uid] = self.created[pod.uid] = pod
        self.events.append(Event(pod=pod))
        return pod

    def remove_pod(self, uid: str) -> None:
        del self.pods[uid]
        self.events.append(Event(gone_pod=uid))

    def bind(self, binding: Binding, epoch: int) -> None:
        """Do what a Binding does; raises KubeStatusError."""
        pod = self.pods.get(binding.uid)
        if pod is None:
            raise _refused(404, "NotFound")
        if pod.spec.node_name:
            raise _refused(409, "Conflict")
        placed = _placed(pod, binding)
        self.pods[pod.uid] = placed
        self.writes.append(Write(binding.uid, binding.node, epoch))
        self.events.append(Event(pod=placed))

    def let_go(self) -> None:
        """Let all that is held back go on."""
        for held in self.held:
            held.set()
        self.held.clear()


def _placed(pod: Pod, binding: Binding) -> Pod:
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=binding.node),
        metadata=msgspec.structs.replace(pod.metadata, annotations=read_only(binding.annotations)),
    )


def _spec(kind: str, node: str) -> Mapping[str, Any]:
    return {"schedulerName": kind, "nodeName": node, "containers": [{"name": "c"}]}


def _refused(status: int, reason: str) -> KubeStatusError:
    return KubeStatusError("POST binding", status=status, reason=reason, message="as it is")


class Writes(PodClient):
    """The binder's view of the API server."""

    def __init__(self, api: Api, epoch_of: Callable[[Binding], int]) -> None:
        self._api = api
        self._epoch_of = epoch_of

    async def create_binding(self, binding: Binding, *, dry_run: bool = False) -> None:
        assert not dry_run  # the model has no Permit plugins
        api, epoch = self._api, self._epoch_of(binding)
        fault = api.faults.pop(binding.uid, "ok")
        if epoch < api.fenced:
            api.late.append(f"{binding} in epoch {epoch}, after the barrier of epoch {api.fenced}")
        if fault == "refused":
            raise KubeUnreachableError("the connection was refused")
        await asyncio.sleep(LATENCY)
        if fault == "held":
            held = asyncio.Event()
            api.held.append(held)
            try:
                await held.wait()
            finally:
                api.held = [each for each in api.held if each is not held]
        api.bind(binding, epoch)
        if fault == "dark":
            api.dark.add(binding.uid)
        await asyncio.sleep(LATENCY)
        if fault in ("lost", "dark"):
            raise KubeUnreachableError("the connection was reset")

    async def read_pod(self, binding: Binding, *, timeout: float) -> Pod:
        if binding.uid in self._api.dark:
            raise KubeUnreachableError("nobody answers")
        pod = self._api.pods.get(binding.uid)
        if pod is None:
            raise _refused(404, "NotFound")
        return pod


class _Response:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def check(self) -> "_Response":
        return self


class Reads:
    """The gateway's requests that are no watch: pods by name."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], timeout: float
    ) -> _Response:
        del method, path, timeout
        name = query["fieldSelector"].split(",")[0].removeprefix("metadata.name=")
        found = [msgspec.Raw(encode(p)) for p in self._api.pods.values() if p.name == name]
        body = {"metadata": {"resourceVersion": str(time.monotonic())}, "items": found}
        return _Response(msgspec.json.encode(body))
