"""Reads what there is to know about a pod: the pod, its Events, and the gateway's decisions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cli.decisions.explain.group import PodGroup, read_group
from cli.decisions.explain.message import Rejections, rejections
from cli.shared.gateway.client import SECONDS, connected
from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.finding import Object
from cli.shared.gateway.options import GatewayOptions
from cli.shared.given import namespace_and_name
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError, connect


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
        group: The pod's group, if it has one.
        is_gone: Whether the pod exists no more; then only its names and its uid are known.
    """

    pod: Object
    events: Sequence[Object]
    attempts: Sequence[Object]
    silence: str
    node: str = ""
    views: Sequence[Object] = ()
    group: PodGroup | None = None
    is_gone: bool = False

    @property
    def scheduled(self) -> Object:
        """The pod's condition PodScheduled; empty if it has none."""
        conditions = (self.pod.get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each.get("type") == "PodScheduled"), {})

    @property
    def rejections(self) -> Rejections:
        """What kube-scheduler reports of a pod that no node suits."""
        if self.scheduled.get("reason") != "Unschedulable":
            return Rejections()
        return rejections(str(self.scheduled.get("message", "")), self.attempts)


async def read(pod: str, node: str, options: GatewayOptions) -> Facts:
    """Read everything about a pod, given as "NAMESPACE/POD".

    Raises:
        ConfigurationError: The name is wrong, there is no such pod or node, or a file for the
            admin port cannot be used.
        KubeError: The API server does not answer, or refuses to.
    """
    namespace, name = namespace_and_name(pod)
    client = await connect(options.kubeconfig)
    decisions = asyncio.create_task(_decisions(options, client, namespace, name, node))
    try:
        there = await _get(client, f"/api/v1/namespaces/{namespace}/pods/{name}")
        attempts, views, silence = await decisions
        if node and await _get(client, f"/api/v1/nodes/{node}") is None:
            raise ConfigurationError(f"there is no node {node}")
        found = there or _as_decided(namespace, name, attempts)
        uid = found["metadata"]["uid"]
        events, group = await asyncio.gather(
            _events(client, namespace, uid), read_group(client, found)
        )
    except TimeoutError as error:
        raise KubeUnreachableError(str(error)) from error
    finally:
        decisions.cancel()
        await client.close()
    known = [index for index, each in enumerate(attempts) if each.get("uid") == uid]
    return Facts(
        pod=found,
        events=events,
        attempts=[attempts[index] for index in known],
        silence="" if known else silence or "the gateway knows an earlier pod of this name",
        node=node,
        views=[views[index] for index in known if index < len(views)],
        group=group,
        is_gone=there is None,
    )


def _as_decided(namespace: str, name: str, attempts: Sequence[Object]) -> Object:
    """Return what decisions still show of a pod that exists no more."""
    if not attempts:
        raise ConfigurationError(f"there is no pod {namespace}/{name}")
    metadata = {"namespace": namespace, "name": name, "uid": attempts[0]["uid"]}
    return {"metadata": metadata, "spec": {}}


async def _decisions(
    options: GatewayOptions, client: KubeClient, namespace: str, name: str, node: str
) -> tuple[Sequence[Object], Sequence[Object], str]:
    """Return the attempts on a pod, what each found out about a node, or why there is nothing."""
    path = f"/decisions/{namespace}/{name}"
    try:
        async with connected(options, client) as gateway:
            attempts = (await gateway.get(path))["attempts"]
            views = (await gateway.get(path, {"node": node}))["attempts"] if node else ()
    except GatewayError as error:
        # The gateway's own words, without "there is no decision about pod ...".
        text = str(error)
        return (), (), (text.partition(": ")[2] or text) if error.status == 404 else text
    return attempts, views, ""


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
