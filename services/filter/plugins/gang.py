"""Places groups of pods whole or not at all, on any Kubernetes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import structs

from moorage import Arguments, FilterPlugin, Group, Meta, Nodes, Pod
from moorage.groups import (
    GROUP_KINDS,
    Name,
    group_members,
    group_min_count,
    group_name,
    group_order,
    to_number,
)

RANK = "moorage.io/group-rank"

MOST_AHEAD = 8
"""Groups that room is left for, at most: each costs a trial placement of its own."""


class Gang(FilterPlugin):
    """Places pods with the same label `moorage.io/group` together or not at all.

    The label `moorage.io/group-size` says how many they are, `moorage.io/group-min-count` how many
    are enough to begin, `moorage.io/group-rank` in which order they are placed. Pods that have
    ended on a node count for both. The pods of a PodGroup of scheduler-plugins are a group, too. A
    group is of one namespace and one schedulerName. Of groups that are tried and fit, the one of
    the highest priority comes first, then the oldest, then by name. A group that has had its turn
    for `timeout` seconds and still
    waits, such as for a volume, lets others of its priority go first for as long.
    """

    reads = GROUP_KINDS

    class Args(Arguments):
        """Where the pods of a group go, and for how long they hold what was found for them.

        Attributes:
            topology_key: The label whose value all nodes of a group share, such as a zone or rack;
                "" for any nodes.
            order_key: Places pods in the order of their ranks on nodes in the order of this label,
                so that neighbours are near.
            timeout: Seconds after which unbound pods of a group give up their nodes, and the group
                its turn.
        """

        topology_key: str = ""
        order_key: str = ""
        timeout: Annotated[float, Meta(ge=1, le=120)] = 60.0

    async def start(self) -> None:
        """Know of no attempts yet."""
        self._tried: dict[Name, datetime] = {}
        self._since: dict[Name, datetime] = {}
        self._complete: set[Name] = set()

    def group(self, pod: Pod, nodes: Nodes) -> Group | None:
        """Return the group of a pod with one of the labels, and the groups ahead of it."""
        name = group_name(pod)
        if name is None:
            return None
        groups = {**group_members(nodes)}
        others = (each for each in groups.get(name, ()) if each.uid != pod.uid)
        if not pod.spec.scheduling_gates:  # else it is a question: do all fit without their gates?
            others = (each for each in others if not each.spec.scheduling_gates)
        groups[name] = [*others, pod]
        now, timeout = self.now(), timedelta(seconds=self.args.timeout)
        self._tried = {n: at for n, at in self._tried.items() if now - at < timeout}
        self._since = {n: at for n, at in self._since.items() if n in self._tried}
        waiting = {n: pods for n in self._tried if (pods := _ready(groups.get(n, ())))}
        waiting[name] = groups[name]
        orders = {}
        for n, pods in waiting.items():
            priority, age, _ = group_order(n, pods)
            orders[n] = priority, (now - self._since.get(n, now)) // timeout % 2, age, n
        before = (n for n in orders if orders[n] < orders[name])
        ahead = sorted(before, key=orders.__getitem__)[:MOST_AHEAD]
        self._complete &= groups.keys()
        mine = self._described(name, groups[name], nodes)
        if not pod.spec.scheduling_gates:
            self._tried[name] = now
            if not ahead and len(mine.members) >= mine.min_count:  # its turn begins
                self._since.setdefault(name, now)
        self._note_completeness(name, mine)
        ahead_of_it = [self._described(other, waiting[other], nodes) for other in ahead]
        return structs.replace(mine, ahead=ahead_of_it)

    def _described(self, name: Name, members: Sequence[Pod], nodes: Nodes) -> Group:
        """Return a group; what its pods contradict each other in is its problem."""
        least, problem = group_min_count(name, members, nodes)
        if len({member.spec.scheduler_name for member in members}) > 1:
            problem = "pods of the group have different schedulerNames"
        return Group(
            name="/".join(name),
            members=sorted(members, key=_rank),
            min_count=least,
            topology_key=self.args.topology_key,
            order_key=self.args.order_key,
            problem=problem,
            timeout=self.args.timeout,
        )

    def _note_completeness(self, name: Name, group: Group) -> None:
        """Have the pods of a group tried again when the last one has come.

        Also of one that was never seen incomplete: an earlier instance may have rejected them.
        """
        if len(group.members) < group.min_count:
            self._complete.discard(name)
        elif name not in self._complete:
            self._complete.add(name)
            self.retry_rejected("a group is complete", namespace=name[0])


def _ready(members: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods of a group that may be placed now, if one of them has no node yet."""
    ready = [member for member in members if not member.spec.scheduling_gates]
    return ready if any(not member.spec.node_name for member in ready) else ()


def _rank(pod: Pod) -> tuple[int, str]:
    return to_number(pod.labels.get(RANK, "")) or 0, pod.name
