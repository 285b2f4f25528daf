"""Follows requests for nodes, and takes them back; level by level, from the cluster.

What is known of a request is in its placeholder, so that a controller that is killed at any step
goes on where it was. In memory are only pauses, and what was judged or reported a while ago.

    asked     The placeholder is unschedulable. Nodes that exist have the label `EXISTING`.
    coming    The autoscaler brings a node. It is to ignore the placeholder at once: else it would
              count a pod that gets on the node, and its placeholder as well.
    added     A new node has come that holds it.
    deleted   The pod has a node. Its node is kept from consolidation while the pod is on it.
    rejected  The new node is ready, and the pod's rules reject it too. It is asked for another
              one, once; then the pod waits.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from cli.capacity import RequestLimits
from cli.capacity.asking import NodeRequester, is_curable, no_node_helps
from cli.capacity.autoscalers import Autoscaler
from cli.capacity.cluster import ASKED_FOR, ClusterView, WaitingPod
from cli.capacity.coming import IncomingNodes
from cli.capacity.judging import Judge
from cli.capacity.nodes import SETTLED_SECONDS, NodeTracker
from cli.capacity.placeholder import NO_NODE_CAME, NODE_ADDED, NODES_REJECTED, Placeholder
from cli.capacity.reporting import MOST_REPORTED, Reporter
from cli.shared.gateway.client import Gateway
from gateway.decisions.capacity import ASKED, COMING
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated
from moorage_host.kube.events import EventWriter

REJECTED = "/decisions/rejected"

MOST_FAILURES: Final = 2
"""New nodes that may be rejected too before a pod just waits."""

MOST_NODES: Final = 5
"""New nodes that may come for a pod, for whatever reason it is on none of them."""

UNUSED_SECONDS: Final = 60.0
"""How long a pod may stay off a new node that nothing rejects."""

COMING_SECONDS: Final = 0.5
"""From one look at what the autoscaler brings to the next."""

NOTES_SECONDS: Final = 10.0
"""From one look at a placeholder's Events to the next."""


class Controller:
    """Does one look after the other."""

    def __init__(
        self,
        view: ClusterView,
        autoscaler: Autoscaler,
        events: EventWriter,
        limits: RequestLimits,
        say: Callable[[str], object],
    ) -> None:
        """Report by *say* what was done."""
        self._view = view
        self._autoscaler = autoscaler
        self._limits = limits
        self._judge = Judge(view, autoscaler)
        self._nodes = NodeTracker(view, autoscaler, say)
        self._arrivals = IncomingNodes(view, autoscaler, self._nodes)
        self._reporter = Reporter(events, say)
        self._asker = NodeRequester(
            view, autoscaler, self._nodes, self._judge, self._reporter, limits
        )
        self._looked: dict[str, float] = {}

    async def look(self, gateway: Gateway) -> None:
        """Do what is to be done now.

        Raises:
            GatewayError: The gateway does not answer.
            KubeError: The API server does not answer, or refuses.
            TimeoutError: The same.
        """
        self._nodes.note()
        await self._nodes.note_used()
        items = (await gateway.get(REJECTED))["items"]
        rejected = {each["uid"]: each for each in items}
        await self._note_coming()
        for placeholder in list(self._view.placeholders.values()):
            await self._follow(gateway, placeholder, rejected)
        await self._asker.ask(gateway, items)
        await self._nodes.release()
        await self._nodes.mark()

    async def _note_coming(self) -> None:
        """Read what the autoscaler brings, and close the requests that it is for, all at once."""
        asked = any(each.reason in (ASKED, COMING) for each in self._view.placeholders.values())
        if asked and self._is_due("coming", COMING_SECONDS):
            await self._arrivals.note()
            title = self._autoscaler.title
            await asyncio.gather(
                *(
                    self._view.write(replace(each, reason=COMING, message=f"{title}{coming}"))
                    for each in list(self._view.placeholders.values())
                    if each.reason == ASKED and (coming := self._arrivals.of(each)) is not None
                )
            )

    def _is_due(self, key: str, seconds: float) -> bool:
        """Whether something was not looked at for some time; notes that it is now."""
        now = time.monotonic()
        if now - self._looked.get(key, float("-inf")) < seconds:
            return False
        self._looked[key] = now
        while len(self._looked) > MOST_REPORTED:
            del self._looked[next(iter(self._looked))]
        return True

    # ---- requests

    async def _follow(
        self, gateway: Gateway, placeholder: Placeholder, rejected: Mapping[str, Any]
    ) -> None:
        """Bring a request one step on, if there is one."""
        waiting = self._view.waiting.get(placeholder.pod_uid)
        item = rejected.get(placeholder.pod_uid)
        if waiting is None or waiting.pod.is_terminating:
            await self._end(placeholder)
        elif item is not None and not is_curable(item):
            await self._view.delete(placeholder)
            self._reporter.refuse(waiting, "NoNodeHelps", no_node_helps(item))
        elif placeholder.is_open:
            await self._follow_open(placeholder, waiting)
        elif placeholder.reason == NODE_ADDED:
            group = self._group_of(placeholder, rejected)
            await self._follow_added(gateway, placeholder, waiting, group)
        elif placeholder.reason == NO_NODE_CAME and self._is_over(placeholder):
            await self._view.delete(placeholder)  # and another request may follow

    def _is_over(self, placeholder: Placeholder) -> bool:
        return time.time() - placeholder.since > max(self._limits.pause, self._limits.timeout)

    async def _end(self, placeholder: Placeholder) -> None:
        """Take a request back whose pod has a node, or is gone."""
        found = await self._view.pod(placeholder.namespace, placeholder.pod)
        if found is not None and found["metadata"]["uid"] == placeholder.pod_uid:
            place = found["spec"].get("nodeName") or ""
            if not place and not found["metadata"].get("deletionTimestamp"):
                return  # the watch is behind
            if place:
                await self._arrived(placeholder, place)
        await self._view.delete(placeholder)

    async def _arrived(self, placeholder: Placeholder, place: str) -> None:
        """Have the autoscaler keep the node that a pod is on, if it came for a pod."""
        name = f"{placeholder.namespace}/{placeholder.pod}"
        node = self._view.nodes.get(place)
        if node is not None and (
            not self._nodes.is_known(node) or ASKED_FOR in node.metadata.annotations
        ):
            await self._nodes.keep(place, name)
        self._reporter.say(f"{name} is on {place}")

    async def _follow_open(self, placeholder: Placeholder, waiting: WaitingPod) -> None:
        if not placeholder.reason:  # it was created, and no more, when a controller ended
            await self._asker.open(placeholder)
            return
        coming = self._arrivals.of(placeholder)
        if placeholder.reason == COMING and coming is None:
            await self._asker.open(placeholder)
            return
        if (node := self._arrivals.node_for(placeholder, waiting.pod)) is not None:
            await self._nodes.keep(node.name, f"{placeholder.namespace}/{placeholder.pod}")
            message = f"node {node.name} was added for it, and is not used yet"
            nodes = (*placeholder.nodes, node.name)
            await self._show(replace(placeholder, nodes=nodes), NODE_ADDED, message)
            self._reporter.say(
                f"{placeholder.namespace}/{placeholder.pod}: node {node.name} was added"
            )
            return
        is_late = time.time() - placeholder.since > NOTES_SECONDS
        if placeholder.reason == ASKED and is_late and self._is_due(placeholder.uid, NOTES_SECONDS):
            message = await self._progress(placeholder)
            if message != placeholder.message:
                await self._view.write(replace(placeholder, message=message))
        if self._is_over(placeholder):
            message = f"no node came in {self._limits.timeout:g} s ({placeholder.message})"
            await self._show(placeholder, NO_NODE_CAME, message)
            self._reporter.refuse(waiting, "NodeNotAdded", message)

    async def _progress(self, placeholder: Placeholder) -> str:
        """Return what the autoscaler says of a request, after its name."""
        title = self._autoscaler.title
        for reason, note in reversed(await self._view.notes_on(placeholder)):
            if reason in ("FailedScheduling", "NotTriggerScaleUp"):
                return f"{title}: {note}"[:1000]
        return title

    def _group_of(self, placeholder: Placeholder, rejected: Mapping[str, Any]) -> list[Placeholder]:
        """Return the requests of a pod's group, with its own; that alone if it is in none."""
        found: Any = rejected.get(placeholder.pod_uid) or {}
        if not (group := found.get("group")):
            return [placeholder]
        requests = self._view.placeholders.items()
        return [
            each for uid, each in requests if uid in rejected and rejected[uid]["group"] == group
        ]

    async def _follow_added(
        self,
        gateway: Gateway,
        placeholder: Placeholder,
        waiting: WaitingPod,
        group: Sequence[Placeholder],
    ) -> None:
        """Ask for another node if the one that came is of no use.

        Pods of a group get on their nodes together. So they wait for the last one of these, and
        give theirs up when that does not come.
        """
        for each in group:
            if each.reason in (NO_NODE_CAME, NODES_REJECTED) and each.since >= placeholder.since:
                message = f"for {each.pod}, {each.message}"
                # They are over at the same moment, so all of them are asked for at once again.
                await self._view.write(
                    replace(placeholder, reason=each.reason, message=message, since=each.since)
                )
                return
        name = placeholder.nodes[-1] if placeholder.nodes else ""
        node = self._view.nodes.get(name)
        if node is None:
            await self._again(placeholder, waiting, f"node {name}, which was added, is gone")
        elif self._nodes.is_full(node, waiting.pod):
            if len(placeholder.nodes) < MOST_NODES:
                await self._ask_again(placeholder, waiting)
        elif any(each.is_open for each in group):
            return
        elif self._nodes.is_settled(node) and self._is_due(placeholder.uid, SETTLED_SECONDS):
            if untolerated(node.spec.taints, waiting.pod.spec.tolerations, DO_NOT_SCHEDULE):
                return
            profile = waiting.pod.spec.scheduler_name
            why = await self._judge.why_not(gateway, waiting, name, profile)
            if why:
                rejecting = (*placeholder.rejecting, name)
                await self._again(
                    replace(placeholder, rejecting=rejecting), waiting, f"{name} is rejected: {why}"
                )
            elif time.time() - max(each.since for each in group) > UNUSED_SECONDS:
                await self._again(placeholder, waiting, f"the pod did not get on node {name}")

    async def _again(self, placeholder: Placeholder, waiting: WaitingPod, problem: str) -> None:
        """Ask once more after a node that did not help, or give up."""
        self._asker.pause(placeholder.namespace)
        count = len(placeholder.rejecting)
        what = f"{placeholder.namespace}/{placeholder.pod}"
        why = problem.partition(": ")[2] or problem
        if count >= MOST_FAILURES:
            message = f"{_number(count)} new nodes were rejected too: {why}"
            await self._show(placeholder, NODES_REJECTED, message)
            self._reporter.refuse(waiting, "NewNodesRejected", message)
        elif len(placeholder.nodes) >= MOST_NODES:
            message = f"{len(placeholder.nodes)} new nodes did not help: {why}"
            await self._show(placeholder, NODES_REJECTED, message)
            self._reporter.refuse(waiting, "NewNodesRejected", message)
        else:
            self._reporter.say(f"{what}: {problem}; a node is asked for again")
            await self._ask_again(placeholder, waiting)

    async def _ask_again(self, placeholder: Placeholder, waiting: WaitingPod) -> None:
        await self._nodes.mark_existing()
        if self._autoscaler.marks_nodes:
            await self._asker.open(placeholder)
        else:  # the names of nodes that exist are in its affinity, which cannot change
            await self._view.delete(placeholder)
            await self._asker.create(waiting, [], history=placeholder)

    async def _show(self, placeholder: Placeholder, reason: str, message: str) -> None:
        await self._view.write(
            replace(placeholder, reason=reason, message=message, since=time.time())
        )


def _number(count: int) -> str:
    return {1: "one", 2: "two", 3: "three"}.get(count, str(count))
