"""Chooses devices in the filter, and writes that of the bound node onto the pod."""

from typing import ClassVar

from moorage import Binding, BindPlugin, FilterPlugin, Node, Pod, Refusal, Rejection, Scope


class Device(FilterPlugin, BindPlugin):
    """Gives each pod the device that the annotation `device` of its node names."""

    depends_on: ClassVar[Scope] = Scope.NODE  # and yet nothing is cached, for the bind's sake

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.cycle_state.write("device", node.annotations["device"], node=node)
        return None

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        if "broken" in binding.pod.labels:
            return Refusal("the device is broken")
        binding.annotate("example.com/device", binding.cycle_state["device"])
        return None
