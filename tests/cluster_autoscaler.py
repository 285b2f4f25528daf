"""How many nodes Cluster Autoscaler would add for pods that wait: by its source, it is not run.

From the repository kubernetes/autoscaler, folder cluster-autoscaler, as of 2026:

- core/utils/expendable.go: pods of a priority below -10, and pods that are nominated, are left out.
- core/podlistprocessor/filter_out_schedulable.go: pods that fit together on the nodes that there
  are, by the in-tree plugins and the highest priority first, are left out.
- core/podlistprocessor/filter_out_daemon_sets.go: those of DaemonSets are left out.
- simulator/node_info_utils.go: a template is a copy of a node of the group, with another name, and
  that name in the label kubernetes.io/hostname; only pods of DaemonSets are on it.
- estimator/binpacking_estimator.go: pods are packed onto copies of the template, up to the limit of
  the group.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from moorage_host.kube_scheduler import DEFAULT_CONFIGURATION
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.in_tree import InTreePlugins

Object = dict[str, Any]

EXPENDABLE_BELOW: Final = -10
HOSTNAME: Final = "kubernetes.io/hostname"


class NodeGroup(NamedTuple):
    """Nodes alike, of which one is known, and how many may be added."""

    example: Object
    room: int


async def nodes_added(nodes: Iterable[Object], pods: Iterable[Object], group: NodeGroup) -> int:
    """Return how many nodes of the group would be added now."""
    cluster, known = _Cluster(), list(pods)
    for node in nodes:
        cluster.add(node)
    for pod in known:
        if pod["spec"].get("nodeName"):
            cluster.place(pod)
    waiting = [KnownPod(pod) for pod in known if _waits(pod)]
    waiting.sort(key=lambda each: -each.pod.spec.priority)
    left = [pod for pod in waiting if not await cluster.takes(pod)]
    added = 0
    for each in left:
        if not added or not await cluster.takes(each):
            empty = _Cluster()
            empty.add(_template(group.example, 0))
            if added < group.room and await empty.takes(each):
                cluster.add(_template(group.example, added := added + 1))
                await cluster.takes(each)
    return added


class _Cluster:
    def __init__(self) -> None:
        self._cache = SchedulerCache()
        self._plugins = InTreePlugins(DEFAULT_CONFIGURATION.profiles[0], frozenset())

    def add(self, node: Object) -> None:
        self._cache.set_node(node)

    def place(self, pod: Object) -> None:
        self._cache.set_pod(KnownPod(pod))

    async def takes(self, pod: KnownPod) -> bool:
        """Put the pod onto the first node that it fits, if there is one."""
        verdicts = await self._plugins.filter(pod.pod, self._cache.in_order(0))
        names = list(self._cache.nodes)
        for position, code in enumerate(verdicts.codes):
            if not code:
                self._cache.assume(pod, names[position])
                return True
        return False


def _waits(pod: Object) -> bool:
    """Whether the pod is one that nodes are added for."""
    spec, status = pod["spec"], pod.get("status", {})
    told = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled"]
    owners: Sequence[Object] = pod["metadata"].get("ownerReferences", ())
    return (
        not spec.get("nodeName")
        and any(each.get("reason") == "Unschedulable" for each in told)
        and not status.get("nominatedNodeName")
        and spec.get("priority", 0) >= EXPENDABLE_BELOW
        and all(owner["kind"] != "DaemonSet" for owner in owners)
    )


def _template(example: Object, number: int) -> Object:
    node = copy.deepcopy(example)
    name = f"template-node-{number}"
    labels = {**node["metadata"].get("labels", {}), HOSTNAME: name}
    node["metadata"] = {**node["metadata"], "name": name, "uid": name, "labels": labels}
    return node
