"""What the controller sees of the cluster, and what it writes there."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote

import msgspec
from prometheus_client import Counter

from cli.capacity.autoscalers import EXISTING
from cli.capacity.placeholder import Manifest, Placeholder, read_placeholder, status_patch, to_json
from gateway.cluster.reflector import Reflector
from gateway.cluster.wire import Resource
from gateway.decisions.capacity import PLACEHOLDER, SCHEDULER
from moorage.models import NodeManifest, Pod, decode_node, decode_pod
from moorage_host.kube import KubeClient

KARPENTER: Final = "/apis/karpenter.sh/v1"

SECONDS: Final = 10.0
"""Time for one request."""

AT_ONCE: Final = 8
"""Writes side by side."""

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"

ASKED_FOR: Final = "moorage.io/asked-for"
"""The annotation of nodes with the pods that they came for, as NAMESPACE/NAME, by commas."""

EVENTS = Counter("capacity_watch_events", "Events of watches.", ["type"], registry=None)


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod without a node, and as the API server has it."""

    pod: Pod
    manifest: Manifest

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.uid


def _waiting_pod(raw: msgspec.Raw) -> WaitingPod:
    return WaitingPod(decode_pod(raw), msgspec.json.decode(raw))


class ClusterView:
    """Nodes, and pods without a node, as watches show them; writes of the controller.

    Attributes:
        nodes: By name.
        waiting: Pods without a node by uid, placeholders left out.
        placeholders: By the uid of their pod.
        changed: Set by each change.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.nodes: dict[str, NodeManifest] = {}
        self.waiting: dict[str, WaitingPod] = {}
        self.placeholders: dict[str, Placeholder] = {}
        self.changed = asyncio.Event()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reflectors = (
            self._reflector(
                Resource(path="/api/v1/nodes", key="name", decode=decode_node),
                self._put_node,
                self._drop_node,
            ),
            self._reflector(
                Resource(
                    path="/api/v1/pods",
                    key="uid",
                    decode=_waiting_pod,
                    query={"fieldSelector": "spec.nodeName=,status.phase=Pending"},
                ),
                self._put_pod,
                self._drop_pod,
            ),
        )

    def _reflector(
        self, resource: Resource[Any], put: Callable[[Any], object], drop: Callable[[str], object]
    ) -> Reflector[Any]:
        return Reflector(
            self._client,
            resource,
            put=put,
            drop=drop,
            received=EVENTS.labels,
            restarted=lambda _: None,
        )

    @property
    def problem(self) -> str:
        """Why the watches do not show the cluster now; "" if they do."""
        lost = [
            each for each in self._reflectors if each.interruption() or not each.synced.is_set()
        ]
        return next((each.problem or "the cluster has not been read yet" for each in lost), "")

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follow the cluster for as long as the block lasts, which begins once it is known."""
        tasks = [asyncio.create_task(each.run()) for each in self._reflectors]
        try:
            for each in self._reflectors:
                await each.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _put_node(self, node: NodeManifest) -> None:
        self.nodes[node.name] = node
        self.changed.set()

    def _drop_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.changed.set()

    def _put_pod(self, seen: WaitingPod) -> None:
        if seen.pod.spec.scheduler_name == SCHEDULER and PLACEHOLDER in seen.pod.labels:
            placeholder = read_placeholder(seen.manifest)
            self.placeholders[placeholder.pod_uid] = placeholder
        else:
            self.waiting[seen.uid] = seen
        self.changed.set()

    def _drop_pod(self, uid: str) -> None:
        if self.waiting.pop(uid, None) is None:
            gone = [key for key, each in self.placeholders.items() if each.uid == uid]
            for key in gone:
                del self.placeholders[key]
        self.changed.set()

    # ---- what is read by itself

    async def pod(self, namespace: str, name: str) -> Manifest | None:
        """Return a pod; None if there is none."""
        answer = await self._client.request("GET", _pod_path(namespace, name), timeout=SECONDS)
        return None if answer.status == 404 else json.loads(answer.check().body)

    async def pods_on(self, node: str) -> list[Pod]:
        """Return the pods on a node that have not ended."""
        selector = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
        found = await self._client.items(
            "/api/v1/pods", query={"fieldSelector": selector}, timeout=SECONDS
        )
        return [pod for pod in map(decode_pod, found) if not pod.is_terminating]

    async def node_pools(self) -> list[Manifest]:
        """Return Karpenter's NodePools that are not being deleted."""
        return await self._of_karpenter("nodepools")

    async def node_claims(self) -> list[Manifest]:
        """Return Karpenter's NodeClaims that are not being deleted."""
        return await self._of_karpenter("nodeclaims")

    async def _of_karpenter(self, plural: str) -> list[Manifest]:
        found = await self._client.items(f"{KARPENTER}/{plural}", timeout=SECONDS)
        objects = (json.loads(bytes(raw)) for raw in found)
        return [each for each in objects if not each["metadata"].get("deletionTimestamp")]

    async def notes_on(self, placeholder: Placeholder) -> list[tuple[str, str]]:
        """Return reason and note of the Events of a placeholder, the newest last."""
        found = await self._client.items(
            f"/apis/events.k8s.io/v1/namespaces/{placeholder.namespace}/events",
            query={"fieldSelector": f"regarding.uid={placeholder.uid}", "limit": "50"},
            timeout=SECONDS,
        )
        events = sorted((json.loads(bytes(raw)) for raw in found), key=_last_time)
        return [(str(each.get("reason", "")), str(each.get("note", ""))) for each in events]

    async def reported(self, reason: str) -> dict[str, str]:
        """Return the newest notes of Events of a *reason*, by the uids of their pods."""
        found = await self._client.items(
            "/apis/events.k8s.io/v1/events",
            query={"fieldSelector": f"reason={reason}"},
            timeout=SECONDS,
        )
        return {
            str((each.get("regarding") or {}).get("uid")): str(each.get("note", ""))
            for each in sorted((json.loads(bytes(raw)) for raw in found), key=_last_time)
            if each.get("reason") == reason
        }

    # ---- what is written

    async def create(self, manifest: Manifest) -> Placeholder:
        """Create a placeholder; raises KubeStatusError if the API server refuses."""
        path = f"/api/v1/namespaces/{quote(manifest['metadata']['namespace'], safe='')}/pods"
        async with self._slots:
            answer = await self._client.request(
                "POST", path, body=to_json(manifest), timeout=SECONDS
            )
        return read_placeholder(json.loads(answer.check().body))

    async def write(self, placeholder: Placeholder) -> None:
        """Write what a placeholder is to show into its status, unless it is gone."""
        path = f"{_pod_path(placeholder.namespace, placeholder.name)}/status"
        await self._patch(path, status_patch(placeholder), STRATEGIC)
        if placeholder.pod_uid in self.placeholders:
            self.placeholders[placeholder.pod_uid] = placeholder

    async def delete(self, placeholder: Placeholder) -> None:
        """Delete a placeholder, unless it is gone, or there is another one of that name."""
        body = to_json({"gracePeriodSeconds": 0, "preconditions": {"uid": placeholder.uid}})
        path = _pod_path(placeholder.namespace, placeholder.name)
        async with self._slots:
            answer = await self._client.request("DELETE", path, body=body, timeout=SECONDS)
        if answer.status not in (404, 409):
            answer.check()

    async def mark(
        self,
        node: str,
        *,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
    ) -> None:
        """Set labels and annotations of a node, or take away those that are None."""
        metadata = {"labels": labels or {}, "annotations": annotations or {}}
        await self._patch(f"/api/v1/nodes/{quote(node, safe='')}", {"metadata": metadata}, MERGE)

    async def mark_existing(self, names: Sequence[str], *, value: str | None) -> None:
        """Give nodes the label of those that exist, or take it away."""
        await asyncio.gather(*(self.mark(name, labels={EXISTING: value}) for name in names))

    async def _patch(self, path: str, patch: Manifest, kind: str) -> None:
        async with self._slots:
            answer = await self._client.request(
                "PATCH", path, body=to_json(patch), content_type=kind, timeout=SECONDS
            )
        if answer.status not in (404, 409):
            answer.check()


async def karpenter_problem(client: KubeClient) -> str:
    """Return why Karpenter cannot be asked; "" if it can.

    Raises:
        KubeError: The API server does not say.
        TimeoutError: The same.
    """
    answer = await client.request("GET", KARPENTER, timeout=SECONDS)
    if answer.status != 404:
        answer.check()
        return ""
    answer = await client.request("GET", "/apis", timeout=SECONDS)
    groups = json.loads(answer.check().body).get("groups") or ()
    served = next((each["versions"] for each in groups if each["name"] == "karpenter.sh"), ())
    if not served:
        return "the API server does not serve karpenter.sh: is Karpenter installed?"
    versions = ", ".join(str(each["version"]) for each in served)
    return f"the API server serves karpenter.sh/{versions}, not v1: update Karpenter"


def node_of(claim: Manifest) -> str:
    """Return the name of a NodeClaim's node, "" until it has one."""
    return str((claim.get("status") or {}).get("nodeName") or "")


def _last_time(event: Manifest) -> str:
    return event.get("deprecatedLastTimestamp") or event.get("eventTime") or ""


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
