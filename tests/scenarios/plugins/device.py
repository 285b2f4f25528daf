"""Chooses devices in the filter, and writes that of the bound node onto the pod."""

from moorage import Binding, BindPlugin, FilterPlugin, Node, Pod, Refusal, Rejection


class Device(FilterPlugin, BindPlugin):
    """Gives each pod the device that the annotation `device` of its node names."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.cycle_state.write("device", node.annotations["device"], node=node)
        return None

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        binding.annotate("example.com/device", binding.cycle_state["device"])
        return None
