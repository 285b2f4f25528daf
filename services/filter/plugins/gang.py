"""Places groups of pods whole or not at all, on any Kubernetes."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import structs

from moorage import Arguments, FilterPlugin, Group, Meta, Nodes, ObjectKind, Objects, Pod

GROUP, SIZE = "moorage.io/group", "moorage.io/group-size"
MIN_COUNT, RANK = "moorage.io/group-min-count", "moorage.io/group-rank"
POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""The label by which scheduler-plugins knows the pods of its PodGroups."""

PODS = ObjectKind("v1", "pods", label_selector=GROUP)
PODS_OF_POD_GROUPS = ObjectKind("v1", "pods", label_selector=POD_GROUP)
POD_GROUPS = ObjectKind("scheduling.x-k8s.io/v1alpha1", "podgroups", optional=True)

MOST_AHEAD = 8
"""Groups that room is left for, at most: each costs a trial placement of its own."""

Name = tuple[str, str]
Members = Mapping[Name, Sequence[Pod]]


class Gang(FilterPlugin):
    """Places pods with the same label `moorage.io/group` together or not at all.

    The label `moorage.io/group-size` says how many they are, `moorage.io/group-min-count` how many
    are enough to begin, `moorage.io/group-rank` in which order they are placed. The pods of a
    PodGroup of scheduler-plugins are a group, too. A group is of one namespace and one
    schedulerName. Of groups that are tried and fit, the one of the highest priority comes first,
    then the oldest, then by name.
    """

    reads = (PODS, PODS_OF_POD_GROUPS, POD_GROUPS)

    class Args(Arguments):
        """Where the pods of a group go, and for how long they hold what was found for them.

        Attributes:
            topology_key: All nodes of a group have the same value of this label, such as that of a
                zone or rack; empty for any nodes.
            order_key: Pods are placed in the order of their ranks on nodes in the order of this
                label's values, so that one is near the next.
            timeout: Seconds until pods of a group that are not bound let go of their nodes. So
                long, too, a group that was tried is ahead of those after it.
        """

        topology_key: str = ""
        order_key: str = ""
        timeout: Annotated[float, Meta(ge=1, le=120)] = 60.0

    async def start(self) -> None:
        """Know of no attempts yet."""
        self._tried: dict[Name, float] = {}
        self._incomplete: set[Name] = set()

    def group(self, pod: Pod, nodes: Nodes) -> Group | None:
        """Return the group of a pod with one of the labels, and the groups ahead of it."""
        name = _name_of(pod)
        if name is None:
            return None
        groups = {**_members(nodes, PODS), **_members(nodes, PODS_OF_POD_GROUPS)}
        groups[name] = [*(each for each in groups.get(name, ()) if each.uid != pod.uid), pod]
        now, order = time.monotonic(), _order(name, groups[name])
        self._tried = {n: at for n, at in self._tried.items() if now - at < self.args.timeout}
        waiting = [n for n in self._tried if n in groups and _order(n, groups[n]) < order]
        ahead = sorted(waiting, key=lambda n: _order(n, groups[n]))[:MOST_AHEAD]
        self._tried[name] = now
        mine = self._described(name, groups[name], nodes)
        self._note_completeness(name, mine)
        others = [self._described(other, groups[other], nodes) for other in ahead]
        return structs.replace(mine, ahead=others)

    def _described(self, name: Name, members: Sequence[Pod], nodes: Nodes) -> Group:
        """Return a group; what its pods contradict each other in is its problem."""
        least, problem = _least(name, members, nodes)
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
        """Have the pods of a group tried again when the last one has come."""
        if len(group.members) < group.min_count:
            self._incomplete.add(name)
        elif name in self._incomplete:
            self._incomplete.discard(name)
            self.retry_rejected("a group is complete")


def _name_of(pod: Pod) -> Name | None:
    group = pod.labels.get(GROUP) or pod.labels.get(POD_GROUP)
    return (pod.namespace, group) if group else None


def _members(nodes: Nodes, kind: ObjectKind) -> Members:
    """Return the pods of each group that have not ended and are not being deleted."""
    return nodes.objects(kind, Pod).derived("groups", _by_group)


def _by_group(pods: Objects[Pod]) -> Members:
    found: dict[Name, list[Pod]] = defaultdict(list)
    for pod in pods:
        name = _name_of(pod)
        if name is not None and not pod.is_terminal and not pod.is_terminating:
            found[name].append(pod)
    return found


def _order(name: Name, members: Sequence[Pod]) -> tuple[int, str, Name]:
    """Return the key by which groups come one after another."""
    priority = max(member.spec.priority for member in members)
    return -priority, min(member.metadata.creation_timestamp for member in members), name


def _rank(pod: Pod) -> tuple[int, str]:
    return _number(pod.labels.get(RANK, "")) or 0, pod.name


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _least(name: Name, members: Sequence[Pod], nodes: Nodes) -> tuple[int, str]:
    """Return how many pods of a group are enough, and what is wrong with the group."""
    if GROUP not in members[0].labels:
        found: Any = nodes.objects(POD_GROUPS).get(name[1], name[0])
        if found is None:
            return 1, "PodGroup of the group does not exist"
        return int(found.get("spec", {}).get("minMember", 1)), ""
    texts = {member.labels.get(MIN_COUNT) or member.labels.get(SIZE, "") for member in members}
    numbers = [_number(text) or 0 for text in texts]
    if min(numbers) < 1:
        return 1, f"label {SIZE} of the group is not a number from 1 on"
    if len(numbers) > 1:
        return max(numbers), "pods of the group say different sizes"
    return numbers[0], ""
