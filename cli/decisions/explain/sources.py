"""Reads what there is to know about a pod: decisions of the gateway, and what the user may read."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from cli.shared.gateway.client import SECONDS, connected
from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.given import namespace_and_name
from gateway.decisions.why import Known, Object, PodGroup, last_seen
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError, connect

GROUP_VERSIONS = ("v1beta1", "v1alpha2")
"""Versions of scheduling.k8s.io with pod groups: of Kubernetes 1.37, and of 1.36."""

CLAIMS = "/apis/resource.k8s.io/v1"

MOST_PODS = 5000
"""Pods of the namespace among which members of a group are looked for."""


async def read(pod: str, node: str, options: GatewayOptions) -> Known:
    """Read everything about a pod, given as "NAMESPACE/POD".

    Raises:
        ConfigurationError: The name is wrong, there is no such pod or node, or a file for the
            admin port cannot be used.
        KubeError: The API server does not answer, or refuses to.
    """
    namespace, name = namespace_and_name(pod)
    client = await connect(options.kubeconfig)
    decisions = asyncio.create_task(_decisions(options, client, f"{namespace}/{name}", node))
    try:
        there = await _get(client, f"/api/v1/namespaces/{namespace}/pods/{name}")
        answer, problem, asked = await decisions
        if node and await _get(client, f"/api/v1/nodes/{node}") is None:
            raise ConfigurationError(f"there is no node {node}")
        attempts = answer.get("attempts", ())
        found = there or _as_decided(namespace, name, attempts)
        uid = found["metadata"]["uid"]
        events, group, missing = await asyncio.gather(
            _events(client, namespace, uid), _group(client, found), _missing_claims(client, found)
        )
    except TimeoutError as error:
        raise KubeUnreachableError(str(error)) from error
    finally:
        decisions.cancel()
        await client.close()
    is_this = not attempts or attempts[0]["uid"] == uid
    earlier = "" if is_this else "the gateway knows another pod of this name"
    return Known(
        pod=found,
        attempts=attempts if is_this else (),
        silence=problem or answer.get("noAttempts", "") or earlier,
        asked=asked,
        revision=answer.get("policyRevision", ""),
        events=events,
        group=group,
        missing=missing,
        node=node,
        views=answer.get("views", ()) if is_this else (),
        is_gone=there is None,
    )


def _as_decided(namespace: str, name: str, attempts: Sequence[Object]) -> Object:
    """Return what decisions still show of a pod that exists no more."""
    if not attempts:
        raise ConfigurationError(f"there is no pod {namespace}/{name}")
    metadata = {"namespace": namespace, "name": name, "uid": attempts[0]["uid"]}
    return {"metadata": metadata, "spec": {}}


async def _decisions(
    options: GatewayOptions, client: KubeClient, pod: str, node: str
) -> tuple[Object, str, bool]:
    """Return what the gateway knows about a pod, or why it does not say, and if it was asked."""
    query = {"explain": "true", **({"node": node} if node else {})}
    try:
        async with connected(options, client) as gateway:
            return await gateway.get(f"/decisions/{pod}", query), "", True
    except GatewayError as error:
        # Without "there is no decision about pod ...".
        text = str(error)
        is_answer = error.status == 404
        return {}, (text.partition(": ")[2] or text) if is_answer else text, is_answer


async def _get(client: KubeClient, path: str) -> dict[str, Any] | None:
    """Return an object, None if there is none."""
    response = await client.request("GET", path, timeout=SECONDS)
    if response.status == 404:
        return None
    content: dict[str, Any] = msgspec.json.decode(response.check().body)
    return content


async def _events(client: KubeClient, namespace: str, uid: str) -> list[Object]:
    """Return the pod's Events; none if they may not be read, since they are only evidence."""
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    query = {"fieldSelector": f"regarding.uid={uid}"}
    try:
        response = await client.request("GET", path, query=query, timeout=SECONDS)
        items: list[Object] = msgspec.json.decode(response.check().body)["items"] or []
    except KubeStatusError:
        return []
    return sorted(items, key=last_seen, reverse=True)


async def _missing_claims(client: KubeClient, pod: Object) -> list[str]:
    """Return the ResourceClaims that a pending pod names and that do not exist."""
    if pod["spec"].get("nodeName"):
        return []
    claims = pod["spec"].get("resourceClaims") or ()
    names = [each["resourceClaimName"] for each in claims if each.get("resourceClaimName")]
    folder = f"{CLAIMS}/namespaces/{pod['metadata']['namespace']}/resourceclaims"
    answers = [await client.request("GET", f"{folder}/{n}", timeout=SECONDS) for n in names]
    return [name for name, each in zip(names, answers, strict=True) if each.status == 404]


async def _group(client: KubeClient, pod: Object) -> PodGroup | None:
    """Return the group of a pod; None if it has none, or nothing may be read about it."""
    name, namespace = _group_name(pod), pod["metadata"]["namespace"]
    if not name:
        return None
    path, query = f"/api/v1/namespaces/{namespace}/pods", {"limit": str(MOST_PODS)}
    needed, listed = await asyncio.gather(
        _needed(client, namespace, name), client.request("GET", path, query=query, timeout=SECONDS)
    )
    items = msgspec.json.decode(listed.body)["items"] if listed.ok else [pod]
    members = [each for each in items or () if _group_name(each) == name]
    nodes = [str(each["spec"].get("nodeName") or "") for each in members]
    return PodGroup(name=name, needed=needed, nodes=nodes)


def _group_name(pod: Object) -> str:
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


async def _needed(client: KubeClient, namespace: str, name: str) -> int:
    for version in GROUP_VERSIONS:
        path = f"/apis/scheduling.k8s.io/{version}/namespaces/{namespace}/podgroups/{name}"
        answer = await client.request("GET", path, timeout=SECONDS)
        if answer.ok:
            spec = msgspec.json.decode(answer.body).get("spec") or {}
            policy = spec.get("schedulingPolicy") or {}
            return int((policy.get("gang") or {}).get("minCount") or 0)
    return 0
