"""Would a new node help? The gateway says so, of a node that the autoscaler would make."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cli.capacity.autoscalers import MOST_TEMPLATES, Autoscaler, Template, narrowed, suiting
from cli.capacity.cluster import ClusterView, WaitingPod
from cli.capacity.placeholder import Manifest
from cli.shared.gateway.client import Gateway
from cli.shared.gateway.finding import GatewayError
from gateway.decisions.advice import HOSTNAME
from moorage.models import NodeManifest, Pod, encode

POOLS_SECONDS: Final = 10.0
"""How long NodePools are taken to be as they were read."""

VERDICT_SECONDS: Final = 30.0
"""How long a verdict counts for equal pods."""

MOST_VERDICTS: Final = 1000

MOST_QUESTIONS: Final = 20
"""Questions that are asked in one of so many seconds."""

MOST_GROUP: Final = 100
"""New nodes that are simulated for a group."""

BUSY: Final = (429, 503)
"""Statuses of a gateway that may answer later."""


@dataclass(frozen=True, slots=True)
class NewNodeVerdict:
    """Why no new node would help, "" if one would, and what that one has to have."""

    problem: str
    requirements: Sequence[Manifest] = ()


class Judge:
    """Asks about new nodes; equal pods have one verdict for a while."""

    def __init__(self, view: ClusterView, autoscaler: Autoscaler) -> None:
        """Think of nodes as *autoscaler* makes them."""
        self._view = view
        self._autoscaler = autoscaler
        self._pools: Sequence[Manifest] = ()
        self._pools_at = float("-inf")
        self._verdicts: dict[bytes, tuple[float, NewNodeVerdict]] = {}
        self._second, self._questions = 0, 0

    async def verdict(
        self, gateway: Gateway, waiting: WaitingPod, item: Mapping[str, Any], count: int
    ) -> NewNodeVerdict | None:
        """Return whether new nodes would help a pod, or its *count* pods that wait as a group.

        None stands for a gateway that is busy: it is asked later.
        """
        if obstacle := _obstacle(waiting):
            return NewNodeVerdict(f"no new node would help: {obstacle}")
        now = time.monotonic()
        if now - self._pools_at > POOLS_SECONDS and self._autoscaler.marks_nodes:
            self._pools, self._pools_at = await self._view.node_pools(), now
        nodes = list(self._view.nodes.values())
        templates = self._autoscaler.templates(self._pools, nodes)
        if not templates:
            return NewNodeVerdict(
                "no node was asked for: there is no NodePool, or no node to make it like"
            )
        key = _key(waiting.pod, item, count)
        kept = self._verdicts.get(key)
        if kept is not None and now - kept[0] < VERDICT_SECONDS:
            return kept[1]
        chosen = suiting(waiting.pod, templates)[:MOST_TEMPLATES]
        if not chosen:
            verdict = NewNodeVerdict(
                f"no new node would help: {self._autoscaler.title} makes none that the pod's "
                "selector, affinity, tolerations and requests allow"
            )
        elif (asked := await self._asked(gateway, waiting, item, chosen, count)) is None:
            return None
        else:
            verdict = asked
        self._verdicts.pop(key, None)
        self._verdicts[key] = now, verdict
        while len(self._verdicts) > MOST_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        return verdict

    async def _asked(
        self,
        gateway: Gateway,
        waiting: WaitingPod,
        item: Mapping[str, Any],
        templates: Sequence[Template],
        count: int,
    ) -> NewNodeVerdict | None:
        if item["group"]:
            return await self._asked_for_group(gateway, waiting, item, templates, count)
        nodes = [each.node for each in templates]
        answer = await self._simulated(gateway, waiting, item["profile"], nodes)
        if answer is None:
            return None
        feasible = set(answer["feasible"])
        passing = [each for each in templates if each.node.name in feasible]
        if passing:
            return NewNodeVerdict("", list(narrowed(passing, templates)))
        why: Mapping[str, Any] = next(iter(answer.get("rejected") or ()), {})
        reason = f"{why.get('reason', 'it is rejected')} ({why.get('plugin', 'Moorage')})"
        return NewNodeVerdict(f"no new node would help: {reason}, on {templates[0].origin} as well")

    async def _asked_for_group(
        self,
        gateway: Gateway,
        waiting: WaitingPod,
        item: Mapping[str, Any],
        templates: Sequence[Template],
        count: int,
    ) -> NewNodeVerdict | None:
        """Return whether a group would fit on so many new nodes of one kind."""
        answer: Any = {}
        for template in templates:
            copies = [
                _copy(template.node, f"{template.node.name}-{number}")
                for number in range(min(count, MOST_GROUP))
            ]
            answer = await self._simulated(gateway, waiting, item["profile"], copies)
            if answer is None:
                return None
            if (answer.get("group") or {}).get("fits") or answer["feasible"]:
                return NewNodeVerdict("", list(narrowed([template], templates)))
        words = next(iter(answer.get("words") or ()), "the group does not fit")
        return NewNodeVerdict(f"no new node would help: {words}, on {count} new nodes as well")

    async def why_not(self, gateway: Gateway, waiting: WaitingPod, node: str, profile: str) -> str:
        """Return why a node that exists is rejected by now; "" if it is not, or nobody says.

        That a whole group does not fit on it is no reason.
        """
        answer = await self._simulated(gateway, waiting, profile, [node]) or {}
        why: Mapping[str, Any] = next(iter(answer.get("rejected") or ()), {})
        plugin, group = why.get("plugin"), answer.get("group") or {}
        return str(why["reason"]) if plugin and plugin != group.get("plugin") else ""

    async def _simulated(
        self,
        gateway: Gateway,
        waiting: WaitingPod,
        profile: str,
        nodes: Sequence[NodeManifest | str],
    ) -> Any:
        """Return what the plugins say of a pod on nodes; None to ask later."""
        second = int(time.monotonic())
        self._second, asked = second, self._questions if second == self._second else 0
        if asked >= MOST_QUESTIONS:
            return None
        self._questions = asked + 1
        body = {
            "pod": {key: value for key, value in waiting.manifest.items() if key != "status"},
            "nodes": [
                each if isinstance(each, str) else json.loads(encode(each)) for each in nodes
            ],
            "profile": profile,
        }
        try:
            return await gateway.post("/simulate", body)
        except GatewayError as error:
            if error.status in BUSY:
                return None
            raise


def _obstacle(waiting: WaitingPod) -> str:
    """Return why no placeholder can stand for a pod; "" if one can."""
    spec, pod = waiting.pod.spec, waiting.pod
    if waiting.manifest["spec"].get("resourceClaims"):
        return "the pod needs devices of ResourceClaims, which a placeholder cannot ask for"
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity.required.node_selector_terms if affinity and affinity.required else ()
    if required and all(each.match_fields for each in required):
        return "the pod names its node"
    if HOSTNAME in spec.node_selector:
        return "the pod names its node"
    if pod.owner is not None and pod.owner.kind == "DaemonSet":
        return "the pod is of a DaemonSet"
    return ""


def reasons_of(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return why nodes are rejected for a pod: the plugins, and what each says."""
    plugins = item["plugins"]
    return [(each["plugin"], reason["reason"]) for each in plugins for reason in each["reasons"]]


def _key(pod: Pod, item: Mapping[str, Any], count: int) -> bytes:
    """Return what equal pods share: all but names."""
    metadata = msgspec.structs.replace(pod.metadata, name="", uid="", creation_timestamp="")
    same = msgspec.structs.replace(pod, metadata=metadata)
    return encode(same) + msgspec.json.encode((reasons_of(item), item["group"], count))


def _copy(node: NodeManifest, name: str) -> NodeManifest:
    labels = {**node.metadata.labels, HOSTNAME: name}
    metadata = msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)
