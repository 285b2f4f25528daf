"""Stands in for Karpenter 1.12 with its kwok provider, as far as its source says.

It is somebody else's program, so scenarios may have a double of it; `tests/e2e` holds the same
against the real one. What is like in Karpenter:

- pods are provisionable that are unschedulable and neither bound nor nominated;
- node affinity by host name, or by a label of `karpenter.sh`, is refused with an Event;
- nodes and NodeClaims that exist come first; a label that they lack counts as absent;
- a NodeClaim is made for the rest, and a node for it, which at first has a taint and is not ready;
- a node is taken away that is empty, or whose pods fit other nodes by kube-scheduler's rules.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import convert

from cli.capacity.cluster import MERGE
from moorage.models import NodeManifest, Pod, decode_pod
from moorage.rules.nodes import matches_requirement, selects_pod
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated
from moorage.units.quantity import scaled_by
from moorage_host.kube import KubeClient, KubeError
from tools.waiting import until

Object = dict[str, Any]

GROUP = "karpenter.sh"
HOSTNAME = "kubernetes.io/hostname"
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
KEEP = "karpenter.sh/do-not-disrupt"
SECONDS = 10.0


def definition(kind: str, version: str = "v1") -> Object:
    """Return the definition of NodePool or NodeClaim, without its schema."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def node_pool(name: str = "default", **template: Any) -> Object:
    """Return a NodePool whose nodes have these parts of a template's spec."""
    metadata = {each: template.pop(each, {}) for each in ("labels", "annotations")}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": metadata, "spec": template}},
    }


class FakeKarpenter:
    """Adds nodes, and takes them away.

    Attributes:
        added: The names of the nodes that it has added.
        removed: Those that it has taken away.
        consolidates: Whether it takes nodes away.
        limit: How many nodes it may add.
        cpu: How large these are.
        devices: What they have besides; their kubelets report it when they are ready.
        hot: Whether new nodes are hot.
        boot_seconds: How long a node takes from its NodeClaim, and again until it is ready.
        apart_seconds: How much later each next node of the same round comes.
    """

    def __init__(self, client: KubeClient) -> None:
        self.added: list[str] = []
        self.removed: list[str] = []
        self.consolidates = False
        self.limit = 1000
        self.cpu = "8"
        self.devices: dict[str, str] = {}
        self.hot = False
        self.boot_seconds = 0.3
        self.apart_seconds = 0.0
        self._client = client
        self._pools: list[Object] = []
        self._claims: dict[str, tuple[NodeManifest, list[Pod]]] = {}  # on their way
        self._told: set[str] = set()

    @asynccontextmanager
    async def running(self, *pools: Object) -> AsyncIterator[None]:
        """Run with some NodePools for as long as the block lasts."""
        self._pools = list(pools)
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        folder = f"/apis/{GROUP}/v1/nodepools"

        async def served() -> bool:
            for kind in ("NodePool", "NodeClaim"):  # again, as one of another test may be going
                await self._post(definitions, definition(kind))
            folders = folder, f"/apis/{GROUP}/v1/nodeclaims"
            answers = [await self._client.request("GET", f, timeout=SECONDS) for f in folders]
            return all(each.ok for each in answers)

        await until(served, 60)  # a definition is served a moment later
        for pool in pools:
            await self._post(folder, pool)
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            for plural in ("nodeclaims", "nodepools"):
                await self._client.request("DELETE", f"/apis/{GROUP}/v1/{plural}", timeout=SECONDS)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as boots:
            while True:
                with suppress(KubeError, TimeoutError):
                    await self._provision(boots)
                    if self.consolidates:
                        await self._consolidate()
                await asyncio.sleep(0.3)  # its batch

    # ---- adding

    async def _provision(self, boots: asyncio.TaskGroup) -> None:
        pods = await self._pods()
        nodes = await self._nodes()
        room = {name: _Room(node) for name, node in nodes.items()}
        # Until a node is initialized, what its NodeClaim says counts.
        room |= {name: _Room(node) for name, (node, _) in self._claims.items()}
        for pod, _ in pods:
            if pod.spec.node_name in room:
                room[pod.spec.node_name].put(pod)
        fresh: dict[str, list[Pod]] = {}
        for pod, raw in pods:
            if not _is_provisionable(pod, raw):
                continue
            if problem := _refused(raw):
                await self._event(pod, "FailedScheduling", f"Failed to schedule pod, {problem}")
                continue
            place = next((name for name, each in room.items() if each.takes(pod)), "")
            may_add = len(self.added) + len(fresh) < self.limit
            if not place and may_add and (made := self._new_node(pod)) is not None:
                place = made.name
                room[place] = _Room(made)
                fresh[place] = []
                self._claims[place] = made, fresh[place]
            if not place:
                await self._event(pod, "FailedScheduling", "Failed to schedule pod: no NodePool")
                continue
            room[place].put(pod)
            if place in fresh:
                fresh[place].append(pod)
            kind = "nodeclaim" if place in self._claims else "node"
            await self._event(pod, "Nominated", f"Pod should schedule on: {kind}/{place}")
        for number, name in enumerate(fresh):
            boots.create_task(self._boot(*self._claims[name], number * self.apart_seconds))

    def _new_node(self, pod: Pod) -> NodeManifest | None:
        for pool in self._pools:
            name = f"{pool['metadata']['name']}-node{len(self.added) + len(self._claims)}"
            template = pool["spec"]["template"]
            labels = {
                **template["metadata"]["labels"],
                f"{GROUP}/nodepool": pool["metadata"]["name"],
                HOSTNAME: name,
            }
            for each in template["spec"].get("requirements") or ():
                affinity = _required(pod)
                wanted = [
                    value
                    for value in each["values"]
                    if all(
                        matches_requirement(one, {one.key: value})
                        for one in affinity
                        if one.key == each["key"]
                    )
                ]
                labels[each["key"]] = (wanted or each["values"])[0]
            amounts = {"cpu": self.cpu, "memory": "32Gi", "pods": "110", **self.devices}
            node = convert(
                {
                    "metadata": {"name": name, "labels": labels},
                    "spec": {"taints": template["spec"].get("taints") or []},
                    "status": {"allocatable": amounts},
                },
                NodeManifest,
            )
            if _Room(node).takes(pod):
                return node
        return None

    async def _boot(self, node: NodeManifest, pods: list[Pod], later: float) -> None:
        name, labels = node.name, dict(node.metadata.labels)
        self.added.append(name)
        requests: dict[str, str] = {"pods": str(len(pods))}
        for resource in {each for pod in pods for each in pod.requests}:
            amount = sum(pod.requests.get(resource, 0) for pod in pods)
            requests[resource] = f"{amount}m" if resource == "cpu" else str(amount)
        claim = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": {f"{GROUP}/nodepool": labels[f"{GROUP}/nodepool"]},
            },
            "spec": {"resources": {"requests": requests}},
            "status": {
                "nodeName": name,
                "allocatable": {"cpu": self.cpu, "memory": "32Gi", "pods": "110", **self.devices},
            },
        }
        await self._post(f"/apis/{GROUP}/v1/nodeclaims", claim)
        await asyncio.sleep(self.boot_seconds + later)
        taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints]
        amounts = {"cpu": self.cpu, "memory": "32Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts}
        unknown = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        await self._post(
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": {"heated/hot": "true"} if self.hot else {},
                },
                "spec": {"taints": [*taints, UNREGISTERED]},
                "status": {**status, **unknown},
            },
        )
        await asyncio.sleep(self.boot_seconds)
        amounts |= self.devices
        ready = {"conditions": [{"type": "Ready", "status": "True"}], **status}
        labels = {f"{GROUP}/registered": "true", f"{GROUP}/initialized": "true"}
        path = f"/api/v1/nodes/{name}"
        await self._patch(f"{path}/status", {"status": ready})
        await self._patch(path, {"metadata": {"labels": labels}, "spec": {"taints": taints}})
        self._claims.pop(name, None)

    # ---- taking away

    async def _consolidate(self) -> None:
        pods = [pod for pod, _ in await self._pods()]
        nodes = await self._nodes()
        for name, node in nodes.items():
            labels, notes = node.metadata.labels, node.metadata.annotations
            if f"{GROUP}/nodepool" not in labels or labels.get(f"{GROUP}/initialized") != "true":
                continue
            if notes.get(KEEP) == "true" or name in self._claims:
                continue
            room = {other: _Room(each) for other, each in nodes.items() if other != name}
            for pod in pods:
                if pod.spec.node_name in room:
                    room[pod.spec.node_name].put(pod)
            own = [pod for pod in pods if pod.spec.node_name == name]
            for pod in own:
                place = next((other for other, each in room.items() if each.takes(pod)), None)
                if place is None:
                    break
                room[place].put(pod)
            else:
                await self._remove(name, own)
                return

    async def _remove(self, name: str, pods: list[Pod]) -> None:
        self.removed.append(name)
        for pod in pods:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            await self._client.request("DELETE", path, timeout=SECONDS)
        await self._client.request("DELETE", f"/api/v1/nodes/{name}", timeout=SECONDS)
        await self._client.request("DELETE", f"/apis/{GROUP}/v1/nodeclaims/{name}", timeout=SECONDS)

    # ---- the API server

    async def _pods(self) -> list[tuple[Pod, Object]]:
        found = await self._client.items("/api/v1/pods", timeout=SECONDS)
        pods = [(decode_pod(raw), json.loads(bytes(raw))) for raw in found]
        kept = [each for each in pods if not each[0].is_terminal and not each[0].is_terminating]
        return sorted(kept, key=lambda each: -each[0].requests.get("cpu", 0))

    async def _nodes(self) -> dict[str, NodeManifest]:
        found = await self._client.items("/api/v1/nodes", timeout=SECONDS)
        nodes = [convert(json.loads(bytes(raw)), NodeManifest) for raw in found]
        return {node.name: node for node in nodes}

    async def _event(self, pod: Pod, reason: str, note: str) -> None:
        if f"{pod.uid} {note}" in self._told:
            return
        self._told.add(f"{pod.uid} {note}")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{pod.name}.{len(self._told):x}", "namespace": pod.namespace},
            "eventTime": now,
            "reportingController": "karpenter",
            "reportingInstance": "karpenter-0",
            "action": "Scheduling",
            "reason": reason,
            "type": "Normal",
            "note": note,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
        }
        await self._post(f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events", event)

    async def _post(self, path: str, body: Mapping[str, Any]) -> None:
        answer = await self._client.request(
            "POST", path, body=json.dumps(body).encode(), timeout=SECONDS
        )
        if answer.status != 409:
            answer.check()

    async def _patch(self, path: str, body: Mapping[str, Any]) -> None:
        await self._client.request(
            "PATCH", path, body=json.dumps(body).encode(), content_type=MERGE, timeout=SECONDS
        )


class _Room:
    """A node, or a NodeClaim, and what is on it."""

    def __init__(self, node: NodeManifest) -> None:
        self._node = node
        self._pods: list[Pod] = []
        self._free = {
            name: scaled_by(name == "cpu", value) for name, value in node.status.allocatable.items()
        }

    def takes(self, pod: Pod) -> bool:
        labels = self._node.metadata.labels
        taints = [each for each in self._node.spec.taints if each.key != UNREGISTERED["key"]]
        if untolerated(tuple(taints), pod.spec.tolerations, DO_NOT_SCHEDULE) is not None:
            return False
        if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
            return False
        if not all(matches_requirement(each, labels) for each in _required(pod)):
            return False
        for one, other in ((pod, each) for each in self._pods):
            if _refuses(one, other) or _refuses(other, one):
                return False
        needs = {**pod.requests, "pods": 1}
        return all(self._free.get(name, 0) >= amount for name, amount in needs.items() if amount)

    def put(self, pod: Pod) -> None:
        self._pods.append(pod)
        for name, amount in {**pod.requests, "pods": 1}.items():
            self._free[name] = self._free.get(name, 0) - amount


def _required(pod: Pod) -> Any:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    return terms[0].match_expressions if terms else ()


def _refuses(pod: Pod, other: Pod) -> bool:
    anti = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    return any(
        selects_pod(term, pod.namespace, other)
        for term in (anti.required if anti else ())
        if term.topology_key == HOSTNAME
    )


def _is_provisionable(pod: Pod, raw: Object) -> bool:
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return (
        not pod.spec.node_name
        and not pod.status.nominated_node_name
        and any(
            each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
            for each in conditions
        )
    )


def _refused(raw: Object) -> str:
    affinity = ((raw["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in (affinity or {}).get("nodeSelectorTerms") or ():
        if term.get("matchFields"):
            return "node selector term with matchFields is not supported"
        for each in term.get("matchExpressions") or ():
            domain = each["key"].partition("/")[0]
            known = each["key"] in ("karpenter.sh/nodepool", "karpenter.sh/capacity-type")
            if (domain == GROUP and not known) or each["key"] == HOSTNAME:
                return f"using label {each['key']} is not allowed"
    return ""
