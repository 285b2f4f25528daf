"""Finds the gateway's pod: of several the one that decides, since the others have no decisions."""

import re
from typing import Any

import msgspec

from cli.shared.gateway.pods import (
    ADMIN,
    AdminPort,
    Object,
    admin_port,
    is_active,
    is_ready,
    services_in,
)
from cli.shared.given import NAME
from moorage.errors import ConfigurationError, MoorageError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError

SECONDS = 5.0
"""How long the API server may take for an answer."""

LABEL = "app.kubernetes.io/part-of=moorage"
"""What deploy/ puts on all pods of Moorage."""

LEASES = ("moorage-gateway", "moorage-scheduler")
"""The Leases that name who decides: of two gateways, or of kube-schedulers with a gateway each."""


class GatewayError(MoorageError):
    """The gateway did not answer with success; the message has what to do.

    Args:
        message: What is wrong.
        status: The HTTP status code; 0 if no answer came.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


async def find_gateway(client: KubeClient, given: str) -> AdminPort:
    """Return the pod with the gateway that decides.

    Args:
        client: The API server.
        given: The namespace, or NAMESPACE/POD.

    Raises:
        ConfigurationError: *given* has another form.
        GatewayError: There is none, or it cannot be found out.
    """
    form = re.fullmatch(f"(?P<namespace>{NAME})(/(?P<pod>{NAME}))?", given)
    if form is None:
        raise ConfigurationError(f"--gateway {given!r} is neither a namespace nor NAMESPACE/POD")
    namespace, pod = form["namespace"], form["pod"]
    folder = f"/api/v1/namespaces/{namespace}/pods"
    try:
        if pod:
            if port := _admin_port(await _get(client, f"{folder}/{pod}")):
                return port
            raise GatewayError(
                f"pod {given} is no gateway: no container runs the program gateway and has a port "
                f"named {ADMIN}"
            )
        items = (await _get(client, folder, labelSelector=LABEL)).get("items") or ()
        running = [
            (port, each) for each in items if is_active(each) and (port := _admin_port(each))
        ]
        holder = await _holder(client, namespace) if len(running) > 1 else ""
    except (KubeError, TimeoutError) as error:
        what = f"pod {given}" if pod else f"pods in namespace {namespace}"
        reason = (error.message if isinstance(error, KubeStatusError) else "") or error
        raise GatewayError(f"cannot read {what}: {reason}") from error
    if not running:
        raise GatewayError(
            f"no gateway runs in namespace {namespace}: give --admin URL, or --gateway "
            "NAMESPACE[/POD]"
        )
    return min(running, key=lambda each: _rank(each[1], holder))[0]


async def _holder(client: KubeClient, namespace: str) -> str:
    """Return who holds a Lease, as POD_ID; "" if none is held, or it may not be read."""
    for name in LEASES:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        try:
            spec = (await _get(client, path)).get("spec") or {}
        except KubeStatusError:
            continue
        if holder := spec.get("holderIdentity"):
            return str(holder)
    return ""


def _rank(pod: Object, holder: str) -> tuple[bool, bool, str]:
    """Return what sorts pods: the holder first; only a gateway that decides is ready."""
    name = pod["metadata"]["name"]
    return holder.rpartition("_")[0] != name, not is_ready(pod), name


def _admin_port(pod: Object) -> AdminPort | None:
    """Return the admin port of the gateway in a pod, None if it runs none."""
    ports = (admin_port(pod, each) for service, each in services_in(pod) if service == "gateway")
    return next(filter(None, ports), None)


async def _get(client: KubeClient, path: str, **query: str) -> dict[str, Any]:
    response = await client.request("GET", path, query=query, timeout=SECONDS)
    content: dict[str, Any] = msgspec.json.decode(response.check().body)
    return content
