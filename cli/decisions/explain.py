"""Reads what there is to know about a pod: decisions of the gateway, and what the user may read."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cli.shared.gateway.client import SECONDS, connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.known import (
    CLAIMS_UNREAD,
    UNTRIED,
    Known,
    Object,
    PodGroup,
    claims_of,
    last_seen,
    preemptor_of,
)
from gateway.decisions.rejections import Rejection, Rejections
from gateway.decisions.why import Explanation, explanation
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError, connect

GROUP_VERSIONS = ("v1beta1", "v1alpha2")
"""Versions of scheduling.k8s.io with pod groups: of Kubernetes 1.37, and of 1.36."""

CLAIMS = "/apis/resource.k8s.io/v1"


MOST_PODS = 5000
"""Pods of the namespace among which members of a group are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What `moorage explain` shows.

    Attributes:
        known: What is known about the pod.
        found: What follows from that.
        lacking: Why only the gateway was asked; "" if the API server was asked too.
    """

    known: Known
    found: Explanation
    lacking: str = ""


async def explained(pod: str, node: str, options: GatewayOptions) -> Explained:
    """Return why a pod is where it is; by what the gateway knows alone, if no more can be read.

    Args:
        pod: The pod, as NAMESPACE/POD.
        node: The node that is asked about; "" for none.
        options: Where the gateway is, and the cluster.

    Raises:
        ConfigurationError: There is no such pod or node, no kubeconfig and no address of the
            gateway, or a file for the admin port cannot be used.
        GatewayError: There is nothing but the gateway, and it does not answer.
        KubeError: The API server does not answer, or refuses to.
    """
    try:
        client = await connect(options.kubeconfig, context=options.context or None)
    except ConfigurationError as error:
        if options.kubeconfig or not options.admin:
            raise
        return await _by_gateway(pod, node, options, lacking=str(error))
    try:
        known = await _read(client, pod, node, options)
    except KubeUnreachableError as error:
        if not options.admin:
            raise
        return await _by_gateway(pod, node, options, lacking=str(error))
    finally:
        await client.close()
    return Explained(known=known, found=explanation(known))


async def _by_gateway(pod: str, node: str, options: GatewayOptions, lacking: str) -> Explained:
    async with connected(options) as gateway:
        answer = await gateway.get(f"/decisions/{pod}", _query(node))
    namespace, _, name = pod.partition("/")
    attempts, content = answer["attempts"], answer["explanation"]
    known = Known(
        pod={"metadata": {"namespace": namespace, "name": name}, "spec": {}},
        attempts=attempts,
        silence=answer["noAttempts"],
        revision=answer["policyRevision"],
        node=node,
        views=answer["views"],
    )
    if content is None:  # the gateway does not reach the API server either
        reason = attempts[0]["reason"]
        found = Explanation(pod=pod, place="was last seen by the gateway", reason=reason)
    else:
        parts = [Rejection(**each) for each in content.pop("rejections")]
        nodes = sum(each.nodes for each in parts)
        found = Explanation(
            rejections=Rejections(nodes, parts, content.pop("preemption")), **content
        )
    return Explained(known=known, found=found, lacking=lacking)


async def _read(client: KubeClient, pod: str, node: str, options: GatewayOptions) -> Known:
    namespace, _, name = pod.partition("/")
    decisions = asyncio.create_task(_decisions(options, client, pod, node))
    try:
        there = await _get(client, f"/api/v1/namespaces/{namespace}/pods/{name}")
        answer, problem, asked = await decisions
        if node and await _get(client, f"/api/v1/nodes/{node}") is None:
            raise ConfigurationError(f"there is no node {node}")
        attempts = answer.get("attempts", ())
        if not there and not attempts:
            raise ConfigurationError(f"there is no pod {pod}")
        found = there or {
            "metadata": {"namespace": namespace, "name": name, "uid": attempts[0]["uid"]},
            "spec": {},
        }
        uid = found["metadata"]["uid"]
        events, group, claims, lost_node = await asyncio.gather(
            _events(client, namespace, uid),
            _group(client, found),
            _claims(client, found),
            _has_lost_node(client, found),
        )
        preemptor = await _preemptor(client, namespace, events)
    except TimeoutError as error:
        raise KubeUnreachableError(str(error)) from error
    finally:
        decisions.cancel()
    is_this = not attempts or attempts[0]["uid"] == uid
    earlier = "" if is_this else "the gateway knows another pod of this name"
    silence = problem or answer.get("noAttempts", "") or earlier
    has_claims = bool(claims) and all(status == 200 for status in claims.values())
    if has_claims and silence.startswith(CLAIMS_UNREAD):
        silence = UNTRIED
    return Known(
        pod=found,
        attempts=attempts if is_this else (),
        silence=silence,
        asked=asked,
        revision=answer.get("policyRevision", ""),
        events=events,
        group=group,
        missing=[name for name, status in claims.items() if status == 404],
        has_claims=has_claims,
        lost_node=lost_node,
        node=node,
        views=answer.get("views", ()) if is_this else (),
        is_gone=there is None,
        preemptor=preemptor,
        bind=answer.get("bind", {}) if is_this else {},
        holders=answer.get("holders", ()) if is_this else (),
        is_outdated=bool(answer.get("isOutdated")) and is_this,
    )


def _query(node: str) -> dict[str, str]:
    return {"explain": "true", **({"node": node} if node else {})}


async def _decisions(
    options: GatewayOptions, client: KubeClient, pod: str, node: str
) -> tuple[Object, str, bool]:
    """Return what the gateway knows about a pod, or why it does not say, and if it was asked."""
    try:
        async with connected(options, client) as gateway:
            return await gateway.get(f"/decisions/{pod}", _query(node)), "", True
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


async def _has_lost_node(client: KubeClient, pod: Object) -> bool:
    """Return whether the node that a pod is on does not exist, as far as one may see it."""
    node = pod["spec"].get("nodeName")
    if not node:
        return False
    answer = await client.request("GET", f"/api/v1/nodes/{node}", timeout=SECONDS)
    return answer.status == 404


async def _preemptor(client: KubeClient, namespace: str, events: Sequence[Object]) -> str:
    """Return for which pod kube-scheduler evicts one with these Events; "" if that is not known.

    They have its uid alone. It has Events of its own, as no node suited it.
    """
    if not (uid := preemptor_of(events)):
        return ""
    for folder in ("", f"/namespaces/{namespace}"):
        query = {"fieldSelector": f"regarding.uid={uid}", "limit": "1"}
        path = f"/apis/events.k8s.io/v1{folder}/events"
        answer = await client.request("GET", path, query=query, timeout=SECONDS)
        if answer.ok and (items := msgspec.json.decode(answer.body)["items"]):
            return f"{items[0]['regarding']['namespace']}/{items[0]['regarding']['name']}"
    return ""


async def _claims(client: KubeClient, pod: Object) -> dict[str, int]:
    """Return the API server's statuses for the ResourceClaims that a pending pod names."""
    if pod["spec"].get("nodeName"):
        return {}
    names = claims_of(pod)
    folder = f"{CLAIMS}/namespaces/{pod['metadata']['namespace']}/resourceclaims"
    answers = [await client.request("GET", f"{folder}/{n}", timeout=SECONDS) for n in names]
    return {name: each.status for name, each in zip(names, answers, strict=True)}


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
