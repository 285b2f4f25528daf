"""Groups: pods that are placed together or not at all, and which pods are one.

Where the API has no groups, labels or a PodGroup say it.

The pods of a group have the label `moorage.io/group` with its name, and one of the labels
`moorage.io/group-size` and `moorage.io/group-min-count`: how many they are, and how many are enough
to begin. Or they have the label of a PodGroup of scheduler-plugins
(`scheduling.x-k8s.io/v1alpha1`), which says how many are enough. A plugin that uses this reads the
kinds of `GROUP_KINDS`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.models import ObjectKind, Pod
from moorage.snapshot import Nodes, Objects

GROUP, SIZE = "moorage.io/group", "moorage.io/group-size"
MIN_COUNT = "moorage.io/group-min-count"
POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""The label by which scheduler-plugins knows the pods of its PodGroups."""

PODS = ObjectKind("v1", "pods", label_selector=GROUP)
PODS_OF_POD_GROUPS = ObjectKind("v1", "pods", label_selector=POD_GROUP)
POD_GROUPS = ObjectKind("scheduling.x-k8s.io/v1alpha1", "podgroups", optional=True)
GROUP_KINDS = (PODS, PODS_OF_POD_GROUPS, POD_GROUPS)
"""What a plugin reads that asks for groups."""

Name = tuple[str, str]
"""The namespace and the name of a group."""

INDEX = "batch.kubernetes.io/job-completion-index"
"""The label of the pods of an indexed Job: a new pod of an index takes the place of the last."""

GROUP_TIMEOUT = 60.0
"""Seconds for which the members of a group that fits hold their nodes, until they are bound."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are placed together or not at all; `FilterPlugin.group` returns it.

    Attributes:
        name: What it is called; no other group of the plugin has the name.
        members: All of its pods that exist, on nodes or not, in the order in which they are placed.
        min_count: So many of them have to be on nodes together; more are placed if they fit.
        topology_key: All of them go to nodes with one value of this label; "" for any nodes.
        order_key: Members are placed on nodes in the order of this label's values, so that one is
            near the next; "" for the order in which the cluster has them.
        ahead: Groups that wait and come before it: room is left for those of them that fit.
        problem: Why it cannot be placed as it is, as a constant text; "" if it can.
        timeout: Seconds for which members hold the nodes that were found until they are bound.
    """

    name: str
    members: Sequence[Pod]
    min_count: int
    topology_key: str = ""
    order_key: str = ""
    ahead: Sequence["Group"] = ()
    problem: str = ""
    timeout: float = GROUP_TIMEOUT


MOST_MEMBERS = 512
"""Pods of a group that a trial places: all of them in one cycle, while other pods wait."""

TOO_LARGE = f"the group has more than {MOST_MEMBERS} pods"


class ReasonNodes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why nodes were no place for a member: how many they are, and some of them."""

    reason: str
    nodes: int
    examples: list[str] = []


class Trial(msgspec.Struct, kw_only=True):
    """How a trial placement ended.

    Attributes:
        plugin: The plugin that named the group.
        group: The group.
        on_nodes: How many members were on nodes before it.
        nodes: By uid the node of each other member that found one; empty if the group does not fit.
        fitting: How many members found one in the best of the tries, whether that was enough.
        ahead: A group that comes before it, and whose room it would need; "" if there is none.
        domain: The value of the topology label in that try.
        failing: The first member that found none, as NAMESPACE/NAME.
        reasons: Why not, the most frequent reason first.
        lacking: The resource that it lacked on most nodes; "" if it was not a resource.
        lacking_free: On how many nodes of the cluster there is enough of it for one member.
        lacking_domain: The only value of the topology label that these have; "" if they have more.
        like: The node that would hold most members if it were empty, of several the first by name;
            `more_nodes` of these would do.
        cured_by: What would cure it that the first member found none; "" if nothing would, or if
            kube-scheduler's own filters were against it.
    """

    plugin: str
    group: Group
    on_nodes: int = 0
    nodes: dict[str, str] = {}
    fitting: int = 0
    ahead: str = ""
    domain: str = ""
    failing: str = ""
    reasons: list[ReasonNodes] = []
    lacking: str = ""
    lacking_free: int = 0
    lacking_domain: str = ""
    like: str = ""
    more_nodes: int = 0
    cured_by: str = ""

    @property
    def members(self) -> int:
        """How many members exist."""
        return len(self.group.members)

    @property
    def reason(self) -> str:
        """Why the group does not fit: a constant text."""
        waits = "another group is ahead of the pod's" if self.ahead else ""
        return self.refusal or waits or "pods of the group found no nodes"

    @property
    def refusal(self) -> str:
        """Why there is no need to look for nodes; "" if there is."""
        if self.members > MOST_MEMBERS:
            return TOO_LARGE
        missing = "pods of the group are missing" if self.members < self.group.min_count else ""
        return self.group.problem or missing


def group_name(pod: Pod) -> Name | None:
    """Return the group of a pod; None if it has no label of one."""
    group = pod.labels.get(GROUP) or pod.labels.get(POD_GROUP)
    return (pod.namespace, group) if group else None


def group_members(nodes: Nodes) -> Mapping[Name, Sequence[Pod]]:
    """Return the pods of each group that have not ended and are not being deleted.

    `spec.node_name` is "" until the API server has bound a pod, also while the pod counts on a node
    already.
    """
    ours, theirs = _members(nodes, PODS), _members(nodes, PODS_OF_POD_GROUPS)
    both = {
        name: [*{pod.uid: pod for pod in (*ours[name], *theirs[name])}.values()]
        for name in ours.keys() & theirs.keys()
    }
    return {**ours, **theirs, **both}


def group_min_count(name: Name, members: Sequence[Pod], nodes: Nodes) -> tuple[int, str]:
    """Return how many of *members* are enough to begin, and what is wrong with the group.

    Members that have ended were placed, so they need not be placed again. Those that have failed
    count for so long as others are on nodes: where a whole group has failed, it begins again. The
    text is constant; "" if nothing is wrong.
    """
    least, problem = _min_count(name, members, nodes)
    indices = {member.labels.get(INDEX) for member in members} - {None}
    runs = any(member.spec.node_name for member in members)
    ended = {
        pod.uid
        for kind in (PODS, PODS_OF_POD_GROUPS)
        for pod in nodes.objects(kind, Pod).derived("ended", _ended).get(name, ())
        if pod.labels.get(INDEX) not in indices and (runs or pod.status.phase == "Succeeded")
    }
    return max(least - len(ended), 1), problem


def _min_count(name: Name, members: Sequence[Pod], nodes: Nodes) -> tuple[int, str]:
    labelled = {GROUP in member.labels for member in members}
    if len(labelled) > 1:
        return 1, f"pods of the group name it by {GROUP} and by {POD_GROUP}"
    if labelled == {False}:
        found: Any = nodes.objects(POD_GROUPS).get(name[1], name[0])
        if found is None:
            return 1, "PodGroup of the group does not exist"
        return int((found.get("spec") or {}).get("minMember") or 1), ""
    texts = {member.labels.get(MIN_COUNT) or member.labels.get(SIZE, "") for member in members}
    numbers = [to_number(text) or 0 for text in texts]
    if min(numbers) < 1:
        return 1, f"label {SIZE} of the group is not a number from 1 on"
    if len(numbers) > 1:
        return max(numbers), "pods of the group say different sizes"
    return numbers[0], ""


def group_order(name: Name, members: Sequence[Pod]) -> tuple[int, str, Name]:
    """Return the key by which groups come one after another: priority, then age, then name."""
    priority = max(member.spec.priority for member in members)
    return -priority, min(member.metadata.creation_timestamp for member in members), name


def to_number(text: str) -> int | None:
    """Return the number that a label has; None if it has none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _members(nodes: Nodes, kind: ObjectKind) -> Mapping[Name, Sequence[Pod]]:
    return nodes.objects(kind, Pod).derived("groups", _by_group)


def _ended(pods: Objects[Pod]) -> Mapping[Name, Sequence[Pod]]:
    """Return by group the pods that were on nodes and have ended."""
    found: dict[Name, list[Pod]] = defaultdict(list)
    for pod in pods:
        name = group_name(pod)
        if name is not None and pod.is_terminal and pod.spec.node_name:
            found[name].append(pod)
    return found


def _by_group(pods: Objects[Pod]) -> Mapping[Name, Sequence[Pod]]:
    found: dict[Name, list[Pod]] = defaultdict(list)
    for pod in pods:
        name = group_name(pod)
        if name is not None and not pod.is_terminal and not pod.is_terminating:
            found[name].append(pod)
    return found
