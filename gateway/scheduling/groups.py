"""Pod groups, whose members kube-scheduler places together or not at all.

In the cycle of a group (`spec.schedulingGroup`, Kubernetes 1.37 with the feature gate
GenericWorkload) kube-scheduler filters one member after another, each as if those before were
placed. Then it puts everything back, and perhaps goes through the members again for another
placement. No extender hears how a pass ended. If one succeeded, the binds of its members come side
by side, while kube-scheduler goes on with other pods. So what members claim in a pass ends

- when the next pass begins, that is when a member with a claim is filtered again;
- when a member is bound elsewhere: the placement that counts is that of an earlier pass;
- when the same caller goes on with pods of another group or of none: at once if a member was
  rejected on all nodes, else after a while in which no bind comes.

A bind without a claim is checked again, so an end that comes too early costs time and no rule.

Where a bind of a member fails, kube-scheduler tries the member again at once. So binds of a group
that fail again and again wait, longer each time.
"""

import asyncio
from collections import OrderedDict

import msgspec

from gateway.cluster.state import ClusterState
from gateway.cycle import BindCall, Cycle
from moorage.groups import Name
from moorage.models import Pod

MOST_GROUPS = 1000
"""Groups that are kept in mind; the oldest go, and their claims end as those of any pod."""

FIRST_PAUSE = 0.25
"""Seconds that a bind waits after one of its group has failed; twice as long after the next."""

LONGEST_PAUSE = 8.0
"""Seconds that a bind of a group waits at most; never more than half of what is left of a call."""


class Pass(msgspec.Struct, eq=False):
    """The members of a group that have claimed nodes in one pass.

    Attributes:
        caller: Who filters them.
        members: Their UIDs.
        failed: Whether a member was rejected on all nodes. A group may need fewer members.
        left: Whether the caller has gone on with other pods.
    """

    caller: str
    members: set[str]
    failed: bool = False
    left: bool = False


class Groups:
    """Ends the claims of pod groups, and slows their failing binds down.

    Attributes:
        passes: The newest pass of each group whose members have claimed nodes.
    """

    def __init__(self, state: ClusterState, bind_wait: float) -> None:
        """Wait *bind_wait* seconds for the binds of a group that its caller has left."""
        self._state = state
        self._bind_wait = bind_wait
        self.passes: OrderedDict[Name, Pass] = OrderedDict()
        self._failures: OrderedDict[Name, int] = OrderedDict()

    def filtered(self, cycle: Cycle) -> None:
        """Note that a pod is being filtered, before its claim of before is dropped."""
        name = group_of(cycle.pod)
        for other, one in list(self.passes.items()):
            if other == name or one.caller != cycle.caller:
                continue
            if one.failed or not any(map(self._state.is_claimed, one.members)):
                self._end(other)
            elif not one.left:
                one.left = True
                for uid in one.members:
                    self._state.keep_claim(uid, self._bind_wait)
        mine = self.passes.get(name) if name is not None else None
        if mine is None or name is None:
            return
        if cycle.uid in mine.members:
            self._end(name)
        elif mine.left:  # another caller's pod came in between
            mine.left = False
            for uid in mine.members:
                self._state.keep_claim(uid)

    def claimed(self, cycle: Cycle) -> None:
        """Note that a pod has claimed a node."""
        name = group_of(cycle.pod)
        if name is None:
            return
        mine = self.passes.setdefault(name, Pass(cycle.caller, set()))
        mine.members.add(cycle.uid)
        self.passes.move_to_end(name)
        if len(self.passes) > MOST_GROUPS:
            self.passes.popitem(last=False)

    def rejected(self, cycle: Cycle) -> None:
        """Note that a pod was rejected on all nodes."""
        name = group_of(cycle.pod)
        if name is not None and name in self.passes:
            self.passes[name].failed = True

    def binds(self, pod: Pod, node: str) -> None:
        """Note that a pod is to be bound: to its claim, or else that of an earlier pass counts."""
        name, place = group_of(pod), self._state.places.get(pod.uid, "")
        if name is not None and name in self.passes and place not in ("", node):
            self._end(name)

    async def wait(self, pod: Pod, call: BindCall) -> None:
        """Wait before a bind of a group whose binds fail."""
        failures = self._failures.get(name, 0) if (name := group_of(pod)) else 0
        if failures:
            left = (call.deadline - asyncio.get_running_loop().time()) / 2
            pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE, left)
            await asyncio.sleep(max(pause, 0))

    def on_bind_end(self, pod: Pod, *, bound: bool) -> None:
        """Note how a bind ended."""
        name = group_of(pod)
        if name is None:
            return
        if bound:
            self._failures.pop(name, None)
            return
        self._failures[name] = self._failures.pop(name, 0) + 1
        if len(self._failures) > MOST_GROUPS:
            self._failures.popitem(last=False)

    def _end(self, name: Name) -> None:
        for uid in self.passes.pop(name).members:
            self._state.release(uid)


def group_of(pod: Pod) -> Name | None:
    """Return the namespace and the name of a pod's group; None if it has none."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return pod.namespace, group.pod_group_name
