"""Looks at the cluster when a pod is bound."""

from typing import ClassVar

from moorage import Binding, BindPlugin, Refusal


class Neighbours(BindPlugin):
    """Writes onto each pod how many pods its node and the cluster have, itself among them."""

    reads_snapshot: ClassVar[bool] = True

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        node = binding.nodes.get(binding.node)
        if node is None:
            return Refusal("the node is gone")
        everywhere = sum(len(list(each.pods)) for each in binding.nodes)
        binding.annotate("example.com/pods", f"{len(list(node.pods))} of {everywhere}")
        return None
