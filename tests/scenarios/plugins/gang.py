"""A gang: its pods are bound together or not at all."""

from moorage import Allow, Binding, BindPlugin, Refusal, Wait


class Gang(BindPlugin):
    """Binds the pods with one label `gang` once there are as many as the label `gang-size` says."""

    def permit_key(self, binding: Binding) -> str:
        gang = binding.pod.labels.get("gang")
        return f"{binding.namespace}/{gang}" if gang else ""

    async def permit(self, binding: Binding) -> Allow | Wait | Refusal:
        size = int(binding.pod.labels.get("gang-size", "1"))
        if len(binding.arrived) >= size:
            return Allow()
        return Wait(seconds=30, awaited=f"{size} pods of {binding.pod.labels['gang']}")
