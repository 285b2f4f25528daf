"""What is known about the pod group of a pod: its members, and which nodes have some."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from cli.shared.gateway.client import SECONDS
from cli.shared.gateway.finding import Object
from moorage_host.kube import KubeClient

VERSIONS = ("v1beta1", "v1alpha2")
"""Versions of scheduling.k8s.io with pod groups: of Kubernetes 1.37, and of 1.36."""

MOST_PODS = 5000
"""Pods of the namespace among which members are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """A pod group.

    Attributes:
        name: Its name.
        needed: How many pods it needs at once; 0 if that is not known, or any number will do.
        nodes: For each member its node, "" for none.
    """

    name: str
    needed: int
    nodes: Sequence[str]

    @property
    def placed(self) -> int:
        """How many members have a node."""
        return sum(map(bool, self.nodes))

    @property
    def wanted(self) -> int:
        """How many members there are, or have to be."""
        return max(self.needed, len(self.nodes))

    def __str__(self) -> str:
        counts = Counter(filter(None, self.nodes))
        accepted = ", ".join(f"{node} accepted {count}" for node, count in counts.most_common())
        needed = f", {self.needed} needed at once" if self.needed else ""
        return (
            f"Pod group {self.name}: {self.placed}/{self.wanted} placed{needed}"
            f"{f'; nodes: {accepted}' if accepted else ''}"
        )


def group_name(pod: Object) -> str:
    """Return the name of a pod's group, "" for none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


async def read_group(client: KubeClient, pod: Object) -> PodGroup | None:
    """Return the group of a pod; None if it has none, or nothing may be read about it."""
    name, namespace = group_name(pod), pod["metadata"]["namespace"]
    if not name:
        return None
    needed, listed = await asyncio.gather(
        _needed(client, namespace, name),
        client.request(
            "GET",
            f"/api/v1/namespaces/{namespace}/pods",
            query={"limit": str(MOST_PODS)},
            timeout=SECONDS,
        ),
    )
    items = msgspec.json.decode(listed.body)["items"] if listed.ok else [pod]
    members = [each for each in items or () if group_name(each) == name]
    nodes = [str(each["spec"].get("nodeName") or "") for each in members]
    return PodGroup(name=name, needed=needed, nodes=nodes)


async def _needed(client: KubeClient, namespace: str, name: str) -> int:
    for version in VERSIONS:
        path = f"/apis/scheduling.k8s.io/{version}/namespaces/{namespace}/podgroups/{name}"
        answer = await client.request("GET", path, timeout=SECONDS)
        if answer.ok:
            spec = msgspec.json.decode(answer.body).get("spec") or {}
            policy = spec.get("schedulingPolicy") or {}
            return int((policy.get("gang") or {}).get("minCount") or 0)
    return 0
