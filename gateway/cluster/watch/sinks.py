"""Feeds what the reflectors see into the cluster state."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest, Pod


class NodeSink:
    """What the node reflector feeds; keys are names."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def replace(self, objects: Sequence[NodeManifest]) -> None:
        """Take over a full list."""
        present = {manifest.name for manifest in objects}
        for name in self._state.known_nodes():
            if name not in present:
                self._state.drop_node(name)
        for manifest in objects:
            self._state.set_node(manifest)

    def upsert(self, obj: NodeManifest) -> None:
        """Take over a new or changed node."""
        self._state.set_node(obj)

    def delete(self, key: str) -> None:
        """Forget a node by name."""
        self._state.drop_node(key)


class SeenPod(NamedTuple):
    """A pod, and the failed attempt that its status shows, see `gateway.cluster.attempts`."""

    pod: Pod
    failure: str


class PodSink:
    """What the pod reflector feeds; keys are UIDs."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def replace(self, objects: Sequence[SeenPod]) -> None:
        """Take over a full list."""
        present = {seen.pod.uid for seen in objects}
        for uid in self._state.known_pods():
            if uid not in present:
                self._state.drop_pod(uid)
        for seen in objects:
            self.upsert(seen)

    def upsert(self, obj: SeenPod) -> None:
        """Take over a new or changed pod; a failed attempt ends its claim."""
        self._state.set_pod(obj.pod)
        self._state.note_failure(obj.pod.uid, obj.failure)

    def delete(self, key: str) -> None:
        """Forget a pod by UID."""
        self._state.drop_pod(key)
