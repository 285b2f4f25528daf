"""A gang: its pods are bound together or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from moorage import (
    SKIP,
    Allow,
    Binding,
    BindPlugin,
    FilterPlugin,
    Node,
    Nodes,
    ObjectKind,
    Pod,
    Preparation,
    Refusal,
    Rejection,
    Wait,
)

PODS = ObjectKind("v1", "pods", label_selector="gang")


def by_gang(pods: Iterable[Mapping[str, Any]]) -> Mapping[str, set[str]]:
    """Return the uids of the pods of each gang."""
    gangs: dict[str, set[str]] = defaultdict(set)
    for metadata in (pod["metadata"] for pod in pods):
        gangs[f"{metadata['namespace']}/{metadata['labels']['gang']}"].add(metadata["uid"])
    return gangs


def gang_of(pod: Pod) -> str:
    """Return the namespace and name of the pod's gang, or nothing."""
    gang = pod.labels.get("gang")
    return f"{pod.namespace}/{gang}" if gang else ""


class Together(FilterPlugin, BindPlugin):
    """Binds the pods with one label `gang` once there are as many as the label `gang-size` says."""

    reads = (PODS,)
    reads_snapshot: ClassVar[bool] = True

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        if not (gang := gang_of(pod)):
            return SKIP
        others = nodes.objects(PODS).derived("gangs", by_gang).get(gang, set())
        self.complete = len({pod.uid, *others}) >= int(pod.labels["gang-size"])
        if self.complete:
            self.retry_rejected("a gang is complete")
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None if self.complete else Rejection("pods of the gang are missing")

    def permit_key(self, binding: Binding) -> str:
        return gang_of(binding.pod)

    async def permit(self, binding: Binding) -> Allow | Wait | Refusal:
        if not (gang := gang_of(binding.pod)):
            return Allow()
        pods = (pod for node in binding.nodes for pod in node.pods if gang_of(pod) == gang)
        present = {pod.uid for pod in pods if pod.status.phase == "Running"}
        present |= {each.uid for each in binding.arrived}
        size = int(binding.pod.labels["gang-size"])
        if len(present) >= size:
            return Allow()
        return Wait(seconds=3, awaited=f"{size} pods of {binding.pod.labels['gang']}")
