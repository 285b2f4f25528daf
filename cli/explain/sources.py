"""Reads what there is to know about a pod: the pod, its Events, and the gateway's decisions."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeStatusError, connect
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.contexts import client_context
from moorage_host.tls.identities import service_identity

SECONDS = 5.0
"""How long the API server and the gateway may take for an answer."""

NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a pod.

    Attributes:
        pod: The pod as the API server has it.
        events: Its Events, the newest first.
        attempts: The gateway's attempts on this pod, the newest first.
        silence: Why there are no attempts: the gateway's own words, or why it cannot be asked.
        node: The node that is asked about; "" for none.
        views: What each attempt found out about that node, the newest first.
    """

    pod: Object
    events: Sequence[Object]
    attempts: Sequence[Object]
    silence: str
    node: str = ""
    views: Sequence[Object] = ()


async def read(
    pod: str, node: str, admin: str, kubeconfig: Path | None, tls: Path | None = None
) -> Facts:
    """Read everything about a pod, given as "NAMESPACE/POD"; *tls* is an operator's certificate.

    Raises:
        ConfigurationError: The name is wrong, or there is no such pod or node.
        KubeError: The API server does not answer, or refuses to.
    """
    words = re.fullmatch(f"(?P<namespace>{NAME})/(?P<name>{NAME})", pod)
    if words is None:
        raise ConfigurationError(f"{pod!r} is no pod: write NAMESPACE/POD, such as default/web")
    namespace, name = words["namespace"], words["name"]
    secured = _secured(tls)
    client = await connect(kubeconfig)
    try:
        found = await _get(client, f"/api/v1/namespaces/{namespace}/pods/{name}", f"pod {pod}")
        if node:
            await _get(client, f"/api/v1/nodes/{node}", f"node {node}")
        uid = found["metadata"]["uid"]
        events, (attempts, silence), (views, _) = await asyncio.gather(
            _events(client, namespace, uid),
            _attempts(f"{admin}/decisions/{namespace}/{name}", {}, secured),
            _attempts(
                f"{admin}/decisions/{namespace}/{name}", {"node": node} if node else None, secured
            ),
        )
    finally:
        await client.close()
    known = [index for index, each in enumerate(attempts) if each.get("uid") == uid]
    return Facts(
        pod=found,
        events=events,
        attempts=[attempts[index] for index in known],
        silence="" if known else silence or "the gateway knows an earlier pod of this name",
        node=node,
        views=[views[index] for index in known if index < len(views)],
    )


async def _get(client: KubeClient, path: str, what: str) -> dict[str, Any]:
    try:
        response = await client.request("GET", path, timeout=SECONDS)
        content: dict[str, Any] = msgspec.json.decode(response.check().body)
    except KubeStatusError as error:
        if error.status != 404:
            raise
        raise ConfigurationError(f"there is no {what}") from error
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


def _secured(tls: Path | None) -> dict[str, Any]:
    """Return what aiohttp needs to show the certificate of a folder, and to know the gateway."""
    if tls is None:
        return {}
    context = client_context(read_certificate(tls))
    return {"ssl": context, "server_hostname": service_identity("gateway")}


async def _attempts(
    url: str, query: Mapping[str, str] | None, secured: Mapping[str, Any]
) -> tuple[list[Object], str]:
    """Return the attempts that the gateway keeps, or why it shows none."""
    if query is None:
        return [], ""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, params=query, **secured) as response,
        ):
            text = await response.text()
            if response.status == 200:
                return msgspec.json.decode(text)["attempts"], ""
    except (aiohttp.ClientError, TimeoutError) as error:
        reason = str(error) or "it does not answer in time"
        return [], f"the gateway's admin port cannot be asked ({reason}): give --admin"
    try:
        problem = str(msgspec.json.decode(text)["error"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return [], f"{url} answers {response.status}: is it the gateway's admin port?"
    return [], problem.partition(": ")[2] or problem


def last_seen(event: Object) -> str:
    """Return when an Event was last seen, in RFC 3339."""
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return next((str(each) for each in times if each), "")
