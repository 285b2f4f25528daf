"""Finds the gateway's pod: of several the one that decides, since the others have no decisions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cli.shared.given import NAME
from moorage.errors import ConfigurationError, MoorageError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError

SECONDS = 5.0
"""How long the API server may take for an answer."""

LABEL = "app.kubernetes.io/part-of=moorage"
"""What deploy/ puts on all pods of Moorage."""

ADMIN = "admin"
"""The name of the admin port."""

PROGRAM = "gateway"
"""The word in the command of a container by which a gateway is known."""

LEASES = ("moorage-gateway", "moorage-scheduler")
"""The Leases that name who decides: of two gateways, or of kube-schedulers with a gateway each."""

PROBES = ("readinessProbe", "livenessProbe", "startupProbe")

Object = Mapping[str, Any]


class GatewayError(MoorageError):
    """The gateway did not answer with success; the message has what to do.

    Args:
        message: What is wrong.
        status: The HTTP status code; 0 if no answer came.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPod:
    """A pod with a gateway.

    Attributes:
        namespace: The pod's namespace.
        name: Its name.
        port: The number of the admin port.
        is_secured: Whether that port is HTTPS, as the probes of the pod show.
    """

    namespace: str
    name: str
    port: int
    is_secured: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


async def find_gateway(client: KubeClient, given: str) -> GatewayPod:
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
            return _gateway_pod(await _get(client, f"{folder}/{pod}"))
        items = (await _get(client, folder, labelSelector=LABEL)).get("items") or ()
        running = [each for each in items if _container(each) and _runs(each)]
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
    return _gateway_pod(min(running, key=lambda each: _rank(each, holder)))


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
    return holder.rpartition("_")[0] != name, not _is_ready(pod), name


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _runs(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and not pod["metadata"].get("deletionTimestamp")


def _container(pod: Object) -> Object | None:
    """Return the container of the gateway."""
    spec = pod["spec"]
    containers: Sequence[Object] = [*spec["containers"], *(spec.get("initContainers") or ())]
    return next(
        (each for each in containers if ADMIN in ports_of(each) and _is_gateway(each)), None
    )


def _is_gateway(container: Object) -> bool:
    return PROGRAM in (*(container.get("command") or ()), *(container.get("args") or ()))


def _gateway_pod(pod: Object) -> GatewayPod:
    metadata = pod["metadata"]
    container = _container(pod)
    if container is None:
        raise GatewayError(
            f"pod {metadata['namespace']}/{metadata['name']} is no gateway: no container runs the "
            f"program {PROGRAM} and has a port named {ADMIN}"
        )
    return GatewayPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        port=ports_of(container)[ADMIN],
        is_secured=is_secured(container),
    )


def is_secured(container: Object) -> bool:
    """Whether a probe of a container is HTTPS; a sidecar has no readiness probe of its own."""
    probes = (container.get(kind) or {} for kind in PROBES)
    return any((probe.get("httpGet") or {}).get("scheme") == "HTTPS" for probe in probes)


def ports_of(container: Object) -> Mapping[str, int]:
    """Return the numbers of the ports of a container by name."""
    return {each.get("name", ""): each["containerPort"] for each in container.get("ports") or ()}


async def _get(client: KubeClient, path: str, **query: str) -> dict[str, Any]:
    response = await client.request("GET", path, query=query, timeout=SECONDS)
    content: dict[str, Any] = msgspec.json.decode(response.check().body)
    return content
