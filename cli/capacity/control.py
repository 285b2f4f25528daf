"""Asks for nodes, follows what comes, and takes requests back; level by level, from the cluster.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cli.capacity.autoscalers import Autoscaler
from cli.capacity.cluster import ASKED_FOR, ClusterView, Coming, WaitingPod, node_of
from cli.capacity.judging import Judge
from cli.capacity.nodes import SETTLED_SECONDS, NodeBook, Room
from cli.capacity.placeholder import (
    NO_NODE_CAME,
    NODE_ADDED,
    NODES_REJECTED,
    Manifest,
    Placeholder,
    placeholder_manifest,
)
from cli.capacity.reporting import MOST_REPORTED, Reporter
from cli.shared.gateway.client import Gateway
from gateway.decisions.capacity import ASKED, CAPACITY, COMING
from moorage.models import Pod
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated
from moorage_host.kube import KubeStatusError
from moorage_host.kube.events import EventWriter

REJECTED = "/decisions/rejected"

MOST_FAILURES: Final = 2
"""New nodes that may be rejected too before a pod just waits."""

MOST_NODES: Final = 5
"""New nodes that may come for a pod, for whatever reason it is on none of them."""

REACTION_SECONDS: Final = 3.0
"""How long a pod is left to the autoscaler, which may add a node for it by itself."""

UNUSED_SECONDS: Final = 60.0
"""How long a pod may stay off a new node that nothing rejects."""

COMING_SECONDS: Final = 0.5
"""From one look at what the autoscaler brings to the next."""

NOTES_SECONDS: Final = 10.0
"""From one look at a placeholder's Events to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """How much may be asked for.

    Attributes:
        most: Requests that may be open, and `most_per_namespace` of one namespace.
        pause: Seconds after which a namespace may ask again that got a node in vain, or was
            refused.
        timeout: Seconds after which a request that brings no node is taken back.
    """

    most: int
    most_per_namespace: int
    pause: float
    timeout: float


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
        self._nodes = NodeBook(view, autoscaler, say)
        self._paused: dict[str, float] = {}
        self._reporter = Reporter(events, say)
        self._looked: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._coming: dict[str, Coming] = {}

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
            await self._follow(gateway, placeholder, rejected.get(placeholder.pod_uid))
        await self._ask(gateway, items)
        await self._nodes.release()
        await self._nodes.mark()

    async def _note_coming(self) -> None:
        """Read what the autoscaler brings, and close the requests that it is for, all at once."""
        asked = any(each.reason in (ASKED, COMING) for each in self._view.placeholders.values())
        if asked and self._is_due("coming", COMING_SECONDS):
            autoscaler = self._autoscaler
            self._coming = await self._view.coming(autoscaler.brings, claims=autoscaler.marks_nodes)
            await asyncio.gather(
                *(
                    self._view.write(
                        replace(each, reason=COMING, message=f"{autoscaler.title}{coming}")
                    )
                    for each in list(self._view.placeholders.values())
                    if each.reason == ASKED and (coming := self._comes(each)) is not None
                )
            )

    def _comes(self, placeholder: Placeholder) -> Coming | None:
        """Return what comes for a request, None for nothing, or what has come in vain."""
        coming = self._coming.get(placeholder.uid)
        return None if coming is not None and coming.node in placeholder.nodes else coming

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

    async def _follow(self, gateway: Gateway, placeholder: Placeholder, item: Any) -> None:
        """Bring a request one step on, if there is one."""
        waiting = self._view.waiting.get(placeholder.pod_uid)
        if waiting is None or waiting.pod.is_terminating:
            await self._end(placeholder)
        elif item is not None and not _is_curable(item):
            await self._view.delete(placeholder)
            self._reporter.refuse(waiting, "NoNodeHelps", _no_node_helps(item))
        elif placeholder.is_open:
            await self._follow_open(placeholder, waiting)
        elif placeholder.reason == NODE_ADDED:
            await self._follow_added(gateway, placeholder, waiting)
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
            await self._open(placeholder)
            return
        coming = self._comes(placeholder)
        if placeholder.reason == COMING and coming is None:
            await self._open(placeholder)
            return
        named = self._view.nodes.get(coming.node) if coming is not None else None
        if (node := named or self._nodes.coming_for(placeholder, waiting.pod)) is not None:
            await self._nodes.keep(node.name, f"{placeholder.namespace}/{placeholder.pod}")
            message = f"node {node.name} was added for it, and is not used yet"
            nodes = (*placeholder.nodes, node.name)
            await self._show(replace(placeholder, nodes=nodes), NODE_ADDED, message)
            self._reporter.say(
                f"{placeholder.namespace}/{placeholder.pod}: node {node.name} was added"
            )
            return
        if placeholder.reason == ASKED and self._is_due(placeholder.uid, NOTES_SECONDS):
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

    async def _follow_added(
        self, gateway: Gateway, placeholder: Placeholder, waiting: WaitingPod
    ) -> None:
        name = placeholder.nodes[-1] if placeholder.nodes else ""
        node = self._view.nodes.get(name)
        if node is None:
            await self._again(placeholder, waiting, f"node {name}, which was added, is gone")
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
            elif time.time() - placeholder.since > UNUSED_SECONDS:
                await self._again(placeholder, waiting, f"the pod did not get on node {name}")

    async def _again(self, placeholder: Placeholder, waiting: WaitingPod, problem: str) -> None:
        """Ask once more after a node that did not help, or give up."""
        self._pause(placeholder.namespace)
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
            await self._nodes.mark_existing()
            if self._autoscaler.marks_nodes:
                await self._open(placeholder)
            else:  # the names of nodes that exist are in its affinity, which cannot change
                await self._view.delete(placeholder)
                await self._create(waiting, [], history=placeholder)

    async def _open(self, placeholder: Placeholder) -> None:
        await self._show(placeholder, ASKED, self._autoscaler.title)

    async def _show(self, placeholder: Placeholder, reason: str, message: str) -> None:
        await self._view.write(
            replace(placeholder, reason=reason, message=message, since=time.time())
        )

    # ---- asking

    async def _ask(self, gateway: Gateway, items: Sequence[Any]) -> None:
        """Ask for nodes, as far as limits allow; of a group for all that it lacks at once."""
        candidates = [each for each in items if self._is_candidate(each)]
        if not candidates:
            return
        rooms = self._nodes.rooms(await self._claims())
        for members in _in_turns(candidates):
            waiting = [
                each
                for item in members
                if (each := self._view.waiting.get(item["uid"])) is not None
                and each.uid not in self._view.placeholders
            ]
            if not waiting:
                continue
            if not any(_is_curable(each) for each in members):
                self._reporter.refuse(waiting[0], "NoNodeHelps", _no_node_helps(members[0]))
                continue
            wanted = [each for each in waiting if not _finds_room(each.pod, rooms)]
            if group := members[0]["group"]:
                asked = sum(
                    each["group"] == group and each["uid"] in self._view.placeholders
                    for each in items
                )
                wanted = wanted[: max(min(each["lacks"] for each in members) - asked, 0)]
            else:
                wanted = wanted[:1]
            if not wanted:
                continue  # there will be room for them
            if problem := self._limit(waiting[0].pod.namespace, len(wanted)):
                self._reporter.refuse(waiting[0], "NodeNotAsked", problem)
                continue
            verdict = await self._judge.verdict(gateway, waiting[0], members[0], len(waiting))
            if verdict is None:
                continue  # the gateway is busy: next time
            if verdict.problem:
                self._reporter.refuse(waiting[0], "NoNodeHelps", verdict.problem)
                continue
            if time.monotonic() - self._nodes.asked_at > 1:
                await self._nodes.mark_existing()
            self._nodes.asked_at = time.monotonic()
            await asyncio.gather(*(self._create(each, verdict.requirements) for each in wanted))

    async def _claims(self) -> Sequence[Manifest]:
        """Return NodeClaims whose nodes have not come yet."""
        if not self._autoscaler.marks_nodes:
            return ()
        claims = await self._view.node_claims()
        return [each for each in claims if node_of(each) not in self._view.nodes]

    def _is_candidate(self, item: Mapping[str, Any]) -> bool:
        """Whether a pod has no request, and the autoscaler had time to add a node by itself."""
        uid, now = item["uid"], time.monotonic()
        if uid not in self._view.waiting or uid in self._view.placeholders:
            return False
        since = self._seen.setdefault(uid, now)
        while len(self._seen) > MOST_REPORTED:
            del self._seen[next(iter(self._seen))]
        return now - since >= REACTION_SECONDS or not _is_curable(item)

    def _limit(self, namespace: str, count: int) -> str:
        """Return why no more may be asked for now; "" if it may."""
        if time.monotonic() < self._paused.get(namespace, 0.0):
            return "no node is asked for right now: the last request of the namespace was in vain"
        busy = [each for each in self._view.placeholders.values() if each.reason != NODES_REJECTED]
        limits = self._limits
        if len(busy) + count > limits.most:
            return (
                f"no node is asked for right now: {len(busy)} requests are open, of {limits.most}"
            )
        own = sum(each.namespace == namespace for each in busy)
        if own + count > limits.most_per_namespace:
            return (
                f"no node is asked for right now: {own} requests of the namespace are open, "
                f"of {limits.most_per_namespace}"
            )
        return ""

    def _pause(self, namespace: str) -> None:
        now = time.monotonic()
        self._paused = {name: until for name, until in self._paused.items() if until > now}
        self._paused[namespace] = now + self._limits.pause

    async def _create(
        self,
        waiting: WaitingPod,
        requirements: Iterable[Manifest],
        *,
        history: Placeholder | None = None,
    ) -> None:
        known = self._nodes.known
        other = self._autoscaler.other_than(known)
        if other is None:
            problem = f"no node was asked for: a pod cannot name all {len(known)} nodes to avoid"
            self._reporter.refuse(waiting, "NodeNotAsked", problem)
            return
        manifest = placeholder_manifest(
            waiting.manifest,
            waiting.pod,
            autoscaler=self._autoscaler.name,
            requirements=[other, *requirements],
            history=history,
        )
        try:
            placeholder = await self._view.create(manifest)
        except KubeStatusError as error:
            if error.status == 409:
                return  # it is there already, or its former one is yet to go
            if error.status not in (400, 403, 404, 422):
                raise
            self._pause(waiting.pod.namespace)
            self._reporter.refuse(
                waiting, "NodeNotAsked", f"no node was asked for: {error.message}"
            )
            return
        self._view.placeholders[waiting.uid] = placeholder
        await self._open(placeholder)
        self._reporter.asked(waiting, self._autoscaler.title)


def _is_curable(item: Mapping[str, Any]) -> bool:
    return any(each["curedBy"] == CAPACITY for each in item["reasons"])


def _no_node_helps(item: Mapping[str, Any]) -> str:
    reasons = "; ".join(f"{each['reason']} ({each['plugin']})" for each in item["reasons"][:3])
    return f"no new node would help: {reasons}"


def _finds_room(pod: Pod, rooms: Sequence[Room]) -> bool:
    """Whether there will be room for a pod; then it is taken."""
    room = next((each for each in rooms if each.takes(pod)), None)
    if room is not None:
        room.put(pod.requests)
    return room is not None


def _in_turns(items: Sequence[Any]) -> Iterable[list[Any]]:
    """Return pods by groups, one group of each namespace after the other."""
    groups: dict[str, dict[str, list[Any]]] = {}
    for item in items:
        of_namespace = groups.setdefault(item["namespace"], {})
        of_namespace.setdefault(item["group"] or item["uid"], []).append(item)
    queues = [list(each.values()) for each in groups.values()]
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def _number(count: int) -> str:
    return {1: "one", 2: "two", 3: "three"}.get(count, str(count))
