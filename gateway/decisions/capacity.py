"""What `moorage capacity` asks the gateway, and what the gateway says of what it has done.

An autoscaler sees no rule of Moorage. So that command asks it for a node by a placeholder pod,
which stands for the pod, and whose status says how that goes. The gateway reads it from its watch.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import PluginRecord, Record
from gateway.decisions.log import DecisionLog
from moorage.models import Pod

PLACEHOLDER: Final = "moorage.io/placeholder"
"""The label of placeholders; its value names the autoscaler."""

SCHEDULER: Final = "moorage-placeholder"
"""Their schedulerName, which nobody serves."""

CONTROLLER: Final = "moorage-capacity"
"""Who reports Events of that command."""

NODE_ASKED: Final = "NodeAsked"
"""The reason of the Event that the placeholder says as well."""

ASKED: Final = "Unschedulable"
"""The reason of a placeholder's condition PodScheduled while a node is asked for."""

COMING: Final = "NodeComes"
"""The same once the autoscaler brings a node; it reads the placeholder no more."""

CAPACITY: Final = "capacity"
"""What cures a rejection that a new node would not have."""

AT_ONCE = 50
"""Pods that are looked at before cycles get their turn; each takes up to 40 us."""


class PodRejections(Record, omit_defaults=False):
    """A pod that no node suits, and for which Moorage has rejected some.

    Attributes:
        namespace, pod, uid, profile: Which pod, and the profile that decided.
        group: The name of its group; "" for none.
        lacks: How many pods of the group have found no node in its trial placement.
        plugins: Those that reject nodes, and why.
    """

    namespace: str
    pod: str
    uid: str
    profile: str
    group: str
    lacks: int
    plugins: list[PluginRecord]


async def pod_rejections(
    state: ClusterState, waiting: Mapping[str, Waiting], log: DecisionLog
) -> list[PodRejections]:
    """Return the waiting pods for which a plugin of Moorage has rejected nodes at last."""
    found = []
    for count, (uid, shown) in enumerate(list(waiting.items()), start=1):
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)
        pod = state.pods.get(uid)
        if pod is None or shown.reason != "Unschedulable" or pod.spec.node_name:
            continue
        attempts = log.of_pod(pod.namespace, pod.name)
        newest = next((each.decision for each in attempts if each.uid == uid), None)
        if newest is None or newest.filter is None or newest.filter.feasible:
            continue
        if plugins := [each for each in newest.filter.plugins if each.reasons]:
            group = newest.group
            found.append(
                PodRejections(
                    namespace=pod.namespace,
                    pod=pod.name,
                    uid=uid,
                    profile=newest.profile,
                    group=group.name if group is not None else "",
                    lacks=_lacks(group.min_count, group.on_nodes + group.fitting) if group else 0,
                    plugins=plugins,
                )
            )
    return found


def _lacks(wanted: int, found: int) -> int:
    return max(wanted - found, 1)


def is_placeholder(pod: Pod) -> bool:
    """Whether a pod stands for one that waits for a node."""
    return pod.spec.scheduler_name == SCHEDULER and PLACEHOLDER in pod.labels


def requests_of(state: ClusterState, waiting: Mapping[str, Waiting]) -> Mapping[str, Waiting]:
    """Return what placeholders show, by the uids of the pods that they stand for.

    They stand for pods of their own namespace alone, whatever their owner references say.
    """
    found = {}
    for uid, shown in waiting.items():
        pod = state.pods.get(uid)
        if pod is not None and is_placeholder(pod):
            for owner in pod.metadata.owner_references:
                owned = state.pods.get(owner.uid)
                if owned is not None and owned.namespace == pod.namespace:
                    found[owner.uid] = shown
    return found


def capacity_sentence(
    shown: Waiting | None, events: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """Return how far the request for a node is, or why there is none; "" if nobody says.

    Args:
        shown: What the pod's placeholder shows; None if it has none.
        events: The pod's Events, newest first.
    """
    if shown is not None:
        is_asked = shown.reason in (ASKED, COMING)
        asked = f"a node was asked for{_age(shown.since)} ({shown.message})"
        return asked if is_asked else shown.message
    for each in events or ():
        if each.get("reportingController") == CONTROLLER and each.get("reason") != NODE_ASKED:
            return str(each.get("note", ""))
    return ""


def _age(since: str) -> str:
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(since)
    except (ValueError, TypeError):
        return ""
    seconds = max(round(age.total_seconds()), 0)
    return f" {seconds} s ago" if seconds < 120 else f" {seconds // 60} min ago"
