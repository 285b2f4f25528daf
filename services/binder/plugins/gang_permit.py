"""Binds groups of pods whole or not at all."""

from typing import Annotated, ClassVar

from moorage import Allow, Arguments, Binding, BindPlugin, Meta, Refusal, Wait
from moorage.groups import GROUP_KINDS, group_members, group_min_count, group_name


class GangPermit(BindPlugin):
    """Binds the pods of a group together or not at all: the groups that `Gang` places.

    A bind waits until as many pods of its group are bound or wait as are enough to begin.
    """

    reads = GROUP_KINDS
    reads_snapshot: ClassVar[bool] = True

    class Args(Arguments):
        """How long a bind waits.

        Attributes:
            wait: Seconds for which a bind waits for its group, half of that while the group's
                oldest pods are missing. Keep it below half of the extender's httpTimeout.
        """

        wait: Annotated[float, Meta(ge=0.1, le=30)] = 2.0

    def permit_key(self, binding: Binding) -> str:
        """Return the group; binds of pods without one wait for nobody."""
        return "/".join(group_name(binding.pod) or ())

    async def permit(self, binding: Binding) -> Allow | Wait | Refusal:
        """Allow the bind once enough pods of its group are bound or may be."""
        name = group_name(binding.pod)
        if name is None:
            return Allow()
        members = group_members(binding.nodes).get(name, (binding.pod,))
        count, problem = group_min_count(name, members, binding.nodes)
        if problem:
            return Refusal(problem)
        ready = {member.uid for member in members if member.spec.node_name}
        ready |= {other.uid for other in binding.arrived}
        if len(ready) >= count:
            return Allow()
        # kube-scheduler tries a pod again a fixed time after its bind has failed. So parts of a
        # group that come at different times would do so for ever, if all waited equally long.
        arrived = {other.uid for other in binding.arrived}
        waiting = [e for e in members if not (e.spec.node_name or e.spec.scheduling_gates)]
        waiting.sort(key=lambda each: (each.metadata.creation_timestamp, each.name))
        first = next((i for i, each in enumerate(waiting) if each.uid in arrived), len(waiting))
        spare = max(len(members) - count, 0)  # of the oldest pods, so many may never come
        seconds = self.args.wait * (1 - min(first / (spare + 1), 1) / 2)
        return Wait(seconds, f"{count} pods of group {'/'.join(name)}")
