"""Looks at the cluster when a pod is bound."""

from typing import ClassVar

from moorage import Binding, BindPlugin, Node, Refusal


class Neighbours(BindPlugin):
    """Writes onto each pod how many others its node and the cluster have."""

    reads_snapshot: ClassVar[bool] = True

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        node = binding.nodes.get(binding.node)
        if node is None:
            return Refusal("the node is gone")
        everywhere = sum(_others(each, binding.uid) for each in binding.nodes)
        binding.annotate("example.com/pods", f"{_others(node, binding.uid)} of {everywhere}")
        return None


def _others(node: Node, uid: str) -> int:
    return sum(pod.uid != uid for pod in node.pods)
