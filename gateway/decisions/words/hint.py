"""Says why there may be no decision about a pod, from the pod as the API server has it."""

from collections.abc import Collection
from typing import Any
from urllib.parse import quote

import msgspec

from moorage_host.kube import KubeClient, KubeError

SECONDS = 2.0
"""How long the API server may take; there is no hint after that."""


async def hint(client: KubeClient, profiles: Collection[str], namespace: str, name: str) -> str:
    """Return what the pod itself shows; empty if the API server does not answer.

    The gateway may list pods, not get one.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    query = {"fieldSelector": f"metadata.name={name}"}
    try:
        response = await client.request("GET", path, query=query, timeout=SECONDS)
        items = msgspec.json.decode(response.check().body)["items"] or []
    except (KubeError, TimeoutError):
        return ""
    return of_pod(items[0], profiles) if items else "there is no such pod"


def of_pod(pod: dict[str, Any], profiles: Collection[str]) -> str:
    """Return what a pod shows about why Moorage knows nothing of it."""
    spec, status = pod["spec"], pod.get("status") or {}
    scheduler, node = spec.get("schedulerName", ""), spec.get("nodeName", "")
    if scheduler not in profiles:
        served = ", ".join(profiles) or "none"
        return f"its schedulerName is {scheduler}, which no profile serves (profiles: {served})"
    if node:
        return f"it is bound to {node}; Moorage was not asked, or the gateway restarted since"
    if spec.get("schedulingGates"):
        return "it waits for its scheduling gates"
    conditions = status.get("conditions") or ()
    scheduled: dict[str, str] = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    message = scheduled.get("message", "").partition(". ")[0].rstrip(".")
    if not message:
        return "kube-scheduler has not tried it yet; does one with this profile run?"
    reported = f"kube-scheduler says {message}"
    if scheduled.get("reason") != "Unschedulable":
        return reported
    return f"{reported}; its own filters left no node, or the gateway restarted since"
