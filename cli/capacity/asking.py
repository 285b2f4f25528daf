"""Asks for nodes: for which pods, and how many at a time."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from cli.capacity import RequestLimits
from cli.capacity.autoscalers import Autoscaler
from cli.capacity.cluster import ClusterView, WaitingPod, node_of
from cli.capacity.judging import Judge, reasons_of
from cli.capacity.nodes import FreeCapacity, NodeTracker
from cli.capacity.placeholder import NODES_REJECTED, Manifest, Placeholder, placeholder_manifest
from cli.capacity.reporting import MOST_REPORTED, Reporter
from cli.shared.gateway.client import Gateway
from gateway.decisions.capacity import ASKED, CAPACITY
from moorage.models import Pod
from moorage_host.kube import KubeStatusError

REACTION_SECONDS: Final = 3.0
"""How long a pod is left to the autoscaler, which may add a node for it by itself."""


class NodeRequester:
    """Creates requests."""

    def __init__(
        self,
        view: ClusterView,
        autoscaler: Autoscaler,
        nodes: NodeTracker,
        judge: Judge,
        reporter: Reporter,
        limits: RequestLimits,
    ) -> None:
        """Ask *autoscaler* for no more than *limits* allow."""
        self._view = view
        self._autoscaler = autoscaler
        self._nodes = nodes
        self._judge = judge
        self._reporter = reporter
        self._limits = limits
        self._paused: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    async def ask(self, gateway: Gateway, items: Sequence[Any]) -> None:
        """Ask for nodes, as far as limits allow; of a group for all that it lacks at once."""
        candidates = [each for each in items if self._is_candidate(each)]
        if not candidates:
            return
        chosen: list[tuple[WaitingPod, Iterable[Manifest]]] = []
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
            if not any(is_curable(each) for each in members):
                self._reporter.refuse(waiting[0], "NoNodeHelps", no_node_helps(members[0]))
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
            if problem := self._limit(
                waiting[0].pod.namespace, len(wanted), [pod for pod, _ in chosen]
            ):
                self._reporter.refuse(waiting[0], "NodeNotAsked", problem)
                continue
            verdict = await self._judge.verdict(gateway, waiting[0], members[0], len(waiting))
            if verdict is None:
                continue  # the gateway is busy: next time
            if verdict.problem:
                self._reporter.refuse(waiting[0], "NoNodeHelps", verdict.problem)
                continue
            chosen += [(each, verdict.requirements) for each in wanted]
        if chosen:
            if time.monotonic() - self._nodes.asked_at > 1:
                await self._nodes.mark_existing()
            self._nodes.asked_at = time.monotonic()
            # All at once: Karpenter adds too many nodes for requests that come one by one.
            await asyncio.gather(*(self.create(*each) for each in chosen))

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
        return now - since >= REACTION_SECONDS or not is_curable(item)

    def _limit(self, namespace: str, count: int, chosen: Sequence[WaitingPod]) -> str:
        """Return why no more may be asked for now; "" if it may."""
        if time.monotonic() < self._paused.get(namespace, 0.0):
            return "no node is asked for right now: the last request of the namespace was in vain"
        requests = self._view.placeholders.values()
        busy = [each.namespace for each in requests if each.reason != NODES_REJECTED]
        busy += [each.pod.namespace for each in chosen]
        limits = self._limits
        if len(busy) + count > limits.most:
            return (
                f"no node is asked for right now: {len(busy)} requests are open, of {limits.most}"
            )
        own = busy.count(namespace)
        if own + count > limits.most_per_namespace:
            return (
                f"no node is asked for right now: {own} requests of the namespace are open, "
                f"of {limits.most_per_namespace}"
            )
        return ""

    def pause(self, namespace: str) -> None:
        """Have a namespace ask for nothing for a while."""
        now = time.monotonic()
        self._paused = {name: until for name, until in self._paused.items() if until > now}
        self._paused[namespace] = now + self._limits.pause

    async def create(
        self,
        waiting: WaitingPod,
        requirements: Iterable[Manifest],
        *,
        history: Placeholder | None = None,
    ) -> None:
        """Ask for a node for a pod; *history* is its request that brought none.

        Raises:
            KubeError: The API server refuses for a reason that is not the request's.
            TimeoutError: It does not answer.
        """
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
            self.pause(waiting.pod.namespace)
            self._reporter.refuse(
                waiting, "NodeNotAsked", f"no node was asked for: {error.message}"
            )
            return
        self._view.placeholders[waiting.uid] = placeholder
        await self.open(placeholder)
        self._reporter.asked(waiting, self._autoscaler.title)

    async def open(self, placeholder: Placeholder) -> None:
        """Have the autoscaler read a request."""
        await self._view.write(
            replace(placeholder, reason=ASKED, message=self._autoscaler.title, since=time.time())
        )


def is_curable(item: Mapping[str, Any]) -> bool:
    """Whether a new node would cure a rejection of a pod."""
    found = (reason for plugin in item["plugins"] for reason in plugin["reasons"])
    return any(each.get("curedBy") == CAPACITY for each in found)


def no_node_helps(item: Mapping[str, Any]) -> str:
    """Return why none would."""
    reasons = "; ".join(f"{reason} ({plugin})" for plugin, reason in reasons_of(item)[:3])
    return f"no new node would help: {reasons}"


def _finds_room(pod: Pod, rooms: Sequence[FreeCapacity]) -> bool:
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
