"""Feeds what the reflectors see into the cluster state."""

from collections.abc import Sequence

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


class PodSink:
    """What the pod reflector feeds; keys are UIDs."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def replace(self, objects: Sequence[Pod]) -> None:
        """Take over a full list."""
        present = {pod.uid for pod in objects}
        for uid in self._state.known_pods():
            if uid not in present:
                self._state.drop_pod(uid)
        for pod in objects:
            self._state.set_pod(pod)

    def upsert(self, obj: Pod) -> None:
        """Take over a new or changed pod."""
        self._state.set_pod(obj)

    def delete(self, key: str) -> None:
        """Forget a pod by UID."""
        self._state.drop_pod(key)
