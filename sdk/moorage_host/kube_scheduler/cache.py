"""The scheduler's view of the cluster: nodes, pods, and pods that it has assumed onto nodes.

Fed by the watch, read by every cycle. What in-tree plugins look at is in the snapshot, which is
kept up with every change.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import DEVICE_CLASSES, Nodes, Pod
from moorage.models import NodeManifest
from moorage.models.decoding import decode_node, decode_pod
from moorage.snapshot import Snapshot
from moorage_host.kube_scheduler.gojson import node_json, pod_json

Rows = npt.NDArray[np.intp]


class KnownPod:
    """A pod as the API server has it, in the forms that scheduling needs."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.pod: Pod = decode_pod(msgspec.json.encode(document))
        self.uid = self.pod.uid

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
        return str((self.document.get("status") or {}).get("startTime") or "")


class NodeInfo:
    """A node of the API server, with its row in the snapshot."""

    def __init__(self, row: int, document: dict[str, Any]) -> None:
        self.row = row
        self.document = document
        self.manifest: NodeManifest = decode_node(msgspec.json.encode(document))
        self.name = self.manifest.name

    @cached_property
    def wire(self) -> bytes:
        """The node as extenders without a cache get it."""
        return node_json(self.document)


class SchedulerCache:
    """Nodes in the order of their arrival, and pods by uid.

    Pods of a node that is not known yet wait for it.

    Attributes:
        nodes: The nodes by name.
        names: The nodes' names by row of the snapshot; empty where there is none.
        pods: The pods by uid.
        snapshot: What in-tree plugins look at.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.names: list[str] = []
        self.pods: dict[str, KnownPod] = {}
        self.snapshot = Snapshot()
        # Nothing here allocates devices, so no DeviceClass is followed: pods that request a
        # resource that one backs fit nowhere, as with a kube-scheduler without any devices.
        self.snapshot.objects.open((DEVICE_CLASSES,))
        self._free_rows: list[int] = []
        self._rows: dict[str, int] = {}
        self._order: Rows | None = None
        self._places: dict[str, str] = {}
        self._pods_on: defaultdict[str, dict[str, KnownPod]] = defaultdict(dict)
        self._assumed: set[str] = set()
        self._nominated: dict[str, str] = {}
        self._nominees: defaultdict[str, dict[str, KnownPod]] = defaultdict(dict)

    def in_order(self, start: int) -> Nodes:
        """Return all nodes, beginning with the one at *start*."""
        if self._order is None:
            self._order = np.array(list(self._rows.values()), np.intp)
        return self.snapshot.nodes(np.roll(self._order, -start) if start else self._order)

    def rows_of(self, names: Iterable[str]) -> Rows:
        """Return the nodes' rows, -1 for those that nobody knows."""
        return np.array([self._rows.get(name, -1) for name in names], np.intp)

    def one(self, node: NodeInfo) -> Nodes:
        """Return the selection of one node."""
        return self.snapshot.nodes(np.array([node.row], np.intp))

    def pods_on(self, node: str) -> dict[str, KnownPod]:
        """Return the pods on a node by uid, including assumed ones."""
        return self._pods_on.get(node, {})

    def set_node(self, document: dict[str, Any]) -> NodeManifest | None:
        """Store a new state of a node; return the one before, if there was one."""
        name = document["metadata"]["name"]
        before = self.nodes.get(name)
        info = NodeInfo(self._free_row() if before is None else before.row, document)
        self.snapshot.set_node(info.row, info.manifest)
        self.nodes[name] = info
        if before is None:
            self._rows[name], self._order = info.row, None
            self.names[info.row] = name
            for pod in self.pods_on(name).values():
                self.snapshot.place_pod(info.row, pod.pod)
        return None if before is None else before.manifest

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known until the API server reports that they are gone."""
        if info := self.nodes.pop(name, None):
            del self._rows[name]
            self._order = None
            self.names[info.row] = ""
            self.snapshot.remove_row(info.row)
            self._free_rows.append(info.row)

    def set_pod(self, pod: KnownPod) -> None:
        """Store a new state of a pod; one that turns out to be bound is not assumed any more."""
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

    @contextmanager
    def trial(self, node: NodeInfo, added: Iterable[KnownPod] = ()) -> Iterator["NodeTrial"]:
        """Try pods on a node, or the node without some of its own; in the end all is as before."""
        trial = NodeTrial(self.snapshot, node.row)
        try:
            for pod in added:
                trial.add(pod)
            yield trial
        finally:
            trial.undo()

    def nominate(self, pod: KnownPod, node: str) -> None:
        """Hold room for a pod that waits for its victims to go; an empty node ends that."""
        if earlier := self._nominated.pop(pod.uid, ""):
            self._nominees[earlier].pop(pod.uid, None)
        if node:
            self._nominated[pod.uid] = node
            self._nominees[node][pod.uid] = pod

    def nomination(self, pod: KnownPod) -> str:
        """Return the node that is held for a pod, or nothing."""
        return self._nominated.get(pod.uid, "") or pod.pod.status.nominated_node_name

    def nominees(self, node: str, pod: KnownPod) -> list[KnownPod]:
        """Return the pods for which room on the node is held against this pod."""
        rivals = self._nominees.get(node, {}).values()
        priority = pod.pod.spec.priority
        return [r for r in rivals if r.uid != pod.uid and r.pod.spec.priority >= priority]

    @property
    def held_nodes(self) -> set[str]:
        """The nodes on which room is held."""
        return set(self._nominated.values())

    def held(self, node: str) -> list[KnownPod]:
        """Return all pods for which room on the node is held."""
        return list(self._nominees.get(node, {}).values())

    def _free_row(self) -> int:
        if self._free_rows:
            return self._free_rows.pop()
        self.names.append("")
        return len(self.names) - 1

    def _place(self, pod: KnownPod, node: str) -> None:
        if self._places.get(pod.uid, node) != node:
            self._displace(pod.uid)
        self._places[pod.uid] = node
        self._pods_on[node][pod.uid] = pod
        if info := self.nodes.get(node):
            self.snapshot.place_pod(info.row, pod.pod)

    def _displace(self, uid: str) -> None:
        if node := self._places.pop(uid, ""):
            self.snapshot.remove_pod(uid)
            del self._pods_on[node][uid]


class NodeTrial:
    """Changes to the pods on one node, until `undo`."""

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self._snapshot = snapshot
        self._row = row
        self._before: dict[str, tuple[Pod, float] | None] = {}

    def add(self, pod: KnownPod) -> None:
        """Put a pod onto the node."""
        self._before.setdefault(pod.uid, None)
        self._snapshot.place_pod(self._row, pod.pod)

    def remove(self, pod: KnownPod) -> None:
        """Take one of the node's pods off it."""
        since = self._snapshot.placements.time_of(pod.uid)
        self._before.setdefault(pod.uid, (pod.pod, since))
        self._snapshot.remove_pod(pod.uid)

    def undo(self) -> None:
        """Put everything back."""
        for uid, before in self._before.items():
            if before is None:
                self._snapshot.remove_pod(uid)
            else:
                pod, since = before
                self._snapshot.place_pod(self._row, pod, since=since)
