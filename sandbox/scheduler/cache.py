"""What the scheduler knows of the cluster: nodes, pods, and pods that it has assumed onto nodes.

Fed by the watch, read by every cycle. Free resources are kept up per node, so that filtering a node
costs a few dictionary look-ups.
"""

from collections import defaultdict
from functools import cached_property
from typing import Any

import msgspec

from moorage.models import NodeManifest, Pod, decode_node, decode_pod
from moorage.rules.taints import DO_NOT_SCHEDULE
from sandbox.scheduler.gojson import node_json, pod_json


class KnownPod:
    """A pod as the API server has it, in the forms that scheduling needs."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.pod: Pod = decode_pod(msgspec.json.encode(document))

    @property
    def uid(self) -> str:
        """The pod's identity."""
        return self.pod.uid

    @property
    def key(self) -> str:
        """Namespace and name, as people write it."""
        return f"{self.pod.namespace}/{self.pod.name}"

    @cached_property
    def wire(self) -> bytes:
        """The pod as extenders get it."""
        return pod_json(self.document)

    @property
    def start_time(self) -> str:
        """When the kubelet took the pod, empty if it has not; RFC 3339 sorts as text."""
        return str(self.document.get("status", {}).get("startTime") or "")


class NodeInfo:
    """A node with its pods, including assumed ones, and what they leave free."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.manifest = NodeManifest()
        self.document: dict[str, Any] = {}
        self.pods: dict[str, KnownPod] = {}
        self.free: dict[str, int] = {}
        self.free_pods = 0
        self.is_special = False

    def set(self, document: dict[str, Any]) -> None:
        """Take a new state of the node object."""
        self.manifest = decode_node(msgspec.json.encode(document))
        self.document = document
        self.__dict__.pop("wire", None)
        taints = self.manifest.spec.taints
        self.is_special = self.manifest.spec.unschedulable or any(
            taint.effect in DO_NOT_SCHEDULE for taint in taints
        )
        self.free = dict(self.manifest.allocatable)
        self.free_pods = self.free.get("pods", 0)
        for pod in self.pods.values():
            self._take(pod, 1)

    @cached_property
    def wire(self) -> bytes:
        """The node as extenders without a cache get it."""
        return node_json(self.document)

    def add(self, pod: KnownPod) -> None:
        """Put a pod on the node, in place of its earlier state if it is already there."""
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self._take(pod, 1)

    def remove(self, uid: str) -> None:
        """Take a pod off the node, if it is there."""
        if pod := self.pods.pop(uid, None):
            self._take(pod, -1)

    def copy(self) -> "NodeInfo":
        """Return a copy to try something on."""
        twin = NodeInfo(self.name)
        twin.manifest, twin.document = self.manifest, self.document
        twin.pods, twin.free, twin.free_pods = dict(self.pods), dict(self.free), self.free_pods
        twin.is_special = self.is_special
        return twin

    def _take(self, pod: KnownPod, sign: int) -> None:
        self.free_pods -= sign
        for resource, amount in pod.pod.requests.items():
            self.free[resource] = self.free.get(resource, 0) - sign * amount


class Cache:
    """Nodes in the order of their arrival and pods by uid.

    A node that pods name but nobody has seen gets an entry that is not in `nodes`, as in Go.
    """

    def __init__(self) -> None:
        self.nodes: list[NodeInfo] = []
        self.pods: dict[str, KnownPod] = {}
        self._infos: dict[str, NodeInfo] = {}
        self._places: dict[str, str] = {}
        self._assumed: set[str] = set()
        self._nominated: dict[str, str] = {}
        self._nominees: defaultdict[str, dict[str, KnownPod]] = defaultdict(dict)

    def node(self, name: str) -> NodeInfo | None:
        """Return a node that the API server has."""
        info = self._infos.get(name)
        return info if info and info.document else None

    def set_node(self, document: dict[str, Any]) -> NodeManifest | None:
        """Take a new state of a node; return the one before, if there was one."""
        info = self._info(document["metadata"]["name"])
        before = info.manifest if info.document else None
        info.set(document)
        if before is None:
            self.nodes.append(info)
        return before

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known until the API server says that they are gone."""
        if info := self.node(name):
            self.nodes.remove(info)
            info.set({"metadata": {"name": name}})
            info.document = {}

    def set_pod(self, pod: KnownPod) -> None:
        """Take a new state of a pod; one that turns out to be bound is not assumed any more."""
        self.pods[pod.uid] = pod
        if pod.pod.spec.node_name:
            self._assumed.discard(pod.uid)
            self.nominate(pod, "")
            self._place(pod, pod.pod.spec.node_name)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod."""
        if pod := self.pods.pop(uid, None):
            self.nominate(pod, "")
        self._assumed.discard(uid)
        self._displace(uid)

    def assume(self, pod: KnownPod, node: str) -> None:
        """Count the pod as being on the node while it is bound in the background."""
        self._assumed.add(pod.uid)
        self.nominate(pod, "")
        self._place(pod, node)

    def forget(self, uid: str) -> None:
        """Take back `assume`, unless the pod has turned out to be bound."""
        if uid in self._assumed:
            self._assumed.discard(uid)
            self._displace(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is on its way to a node."""
        return uid in self._assumed

    def nominate(self, pod: KnownPod, node: str) -> None:
        """Reserve room for a pod that waits for its victims to go; an empty node ends that."""
        if earlier := self._nominated.pop(pod.uid, ""):
            self._nominees[earlier].pop(pod.uid, None)
        if node:
            self._nominated[pod.uid] = node
            self._nominees[node][pod.uid] = pod

    def nomination(self, pod: KnownPod) -> str:
        """Return the node that is held for a pod, or nothing."""
        return self._nominated.get(pod.uid, "") or pod.pod.status.nominated_node_name

    @property
    def holds_room(self) -> bool:
        """Whether there are nominees at all."""
        return bool(self._nominated)

    def nominees(self, node: str, pod: KnownPod) -> list[KnownPod]:
        """Return the pods for which room on the node is held against this pod."""
        rivals = self._nominees.get(node, {}).values()
        priority = pod.pod.spec.priority
        return [r for r in rivals if r.uid != pod.uid and r.pod.spec.priority >= priority]

    def held(self, node: str) -> list[KnownPod]:
        """Return all pods for which room on the node is held."""
        return list(self._nominees.get(node, {}).values())

    def _info(self, name: str) -> NodeInfo:
        if name not in self._infos:
            self._infos[name] = NodeInfo(name)
        return self._infos[name]

    def _place(self, pod: KnownPod, node: str) -> None:
        if self._places.get(pod.uid, node) != node:
            self._displace(pod.uid)
        self._places[pod.uid] = node
        self._info(node).add(pod)

    def _displace(self, uid: str) -> None:
        if node := self._places.pop(uid, ""):
            info = self._info(node)
            info.remove(uid)
            if not info.pods and not info.document:
                del self._infos[node]
