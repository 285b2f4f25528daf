"""Groups that a plugin names: nodes that are held for all members from the first one's cycle on.

A trial placement finds a node for each member at once (`moorage.execution.trial`). Then the member
of the cycle claims its node, and the others hold theirs until they are filtered, so that no pod of
another group comes in between. What is held ends

- for a member when it is filtered: it claims its node, or the trial says that it no longer fits;
- for all when a trial fails and too few members are on nodes, such as after the loss of a node;
- for all when the time of the group is over and they are not bound.

A member that is deleted holds nothing; its group is short of one in the next trial.
"""

from collections import OrderedDict
from datetime import UTC, datetime

import msgspec

from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle
from gateway.cycle.decision import GroupItem, GroupRecord

MOST_GROUPS = 1000
"""Groups that are kept in mind, the newest ones; what the others hold ends as it would."""


MOST_PODS = 50
"""Pods of a group that lists name."""


class Held(msgspec.Struct, eq=False):
    """What is known of a group, and the uids of the pods that were tried or got a node."""

    item: GroupItem
    uids: set[str]
    ends: float = 0.0


class Reservations:
    """Holds nodes for the members of groups, and ends that."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._held: OrderedDict[tuple[str, str], Held] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def note(self, cycle: Cycle, group: GroupRecord) -> None:
        """Note how a trial ended; if it failed and too few are on nodes, all let go of theirs."""
        held = self._known(cycle, group)
        if not group.fits and group.on_nodes < group.min_count:
            self._let_go(held)

    def seconds(self, cycle: Cycle, group: GroupRecord) -> float:
        """Return for how many seconds members of a group that fits hold their nodes from now on."""
        return self._seconds(self._known(cycle, group), group)

    def _seconds(self, held: Held, group: GroupRecord) -> float:
        now = self._state.now()
        if held.ends <= now:
            if held.ends and self._bound(held) < group.min_count:
                held.item.released += 1
                self._let_go(held)
            held.ends = now + group.timeout
        return held.ends - now

    def take(self, cycle: Cycle, group: GroupRecord) -> None:
        """Hold the nodes that were found for the members other than the pod of the cycle."""
        verdicts, state = cycle.verdicts, self._state
        held = self._known(cycle, group)
        seconds = self._seconds(held, group)
        for uid, node in verdicts.found.items() if verdicts is not None else ():
            pod = state.pods.get(uid)
            # The watch of pods may be behind that of members, or ahead of it.
            if uid != cycle.uid and pod is not None and uid not in state.places:
                state.claim(pod, node, None, seconds)
                held.uids.add(uid)

    def items(self) -> list[GroupItem]:
        """Return the groups that have pods, the newest last."""
        for key, held in list(self._held.items()):
            if not any(map(self._state.pods.get, held.uids)):
                del self._held[key]
        return [self._counted(held) for held in self._held.values()]

    def item(self, profile: str, name: str) -> GroupItem | None:
        """Return a group of a profile."""
        held = self._held.get((profile, name))
        return None if held is None else self._counted(held)

    def _known(self, cycle: Cycle, group: GroupRecord) -> Held:
        key, now = (cycle.profile, group.name), datetime.now(UTC).replace(microsecond=0)
        held = self._held.get(key)
        if held is None:
            item = GroupItem(profile=cycle.profile, group=group, pod="", since=now, time=now)
            held = self._held[key] = Held(item, set())
            if len(self._held) > MOST_GROUPS:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        if len(held.uids) > 2 * group.members + 16:
            held.uids = {uid for uid in held.uids if self._state.pods.get(uid) is not None}
        held.uids.add(cycle.uid)
        held.item.group, held.item.time = group, now
        held.item.pod = f"{cycle.pod.namespace}/{cycle.pod.name}"
        return held

    def _let_go(self, held: Held) -> None:
        for uid in held.uids:
            self._state.release(uid)
        held.uids = {uid for uid in held.uids if self._state.pods.get(uid) is not None}
        held.ends = 0.0

    def _bound(self, held: Held) -> int:
        return sum(bool(self._state.bound_to(uid)) for uid in held.uids)

    def _counted(self, held: Held) -> GroupItem:
        held.item.bound = self._bound(held)
        held.item.holding = sum(map(self._state.is_claimed, held.uids))
        namespace, _, _ = held.item.pod.rpartition("/")  # who may read the group may read it
        known = [pod for uid in held.uids if (pod := self._state.pods.get(uid)) is not None]
        pods = sorted(
            (f"{namespace}/{each.name}", each.spec.node_name)
            for each in known
            if each.namespace == namespace
        )
        held.item.pods = pods[:MOST_PODS]
        held.item.more = max(held.item.group.members, len(known)) - len(held.item.pods)
        return held.item
