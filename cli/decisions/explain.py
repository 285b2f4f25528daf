"""Asks the gateway why a pod is where it is, and reads for it what only the user may.

Where the gateway is not reached, the pod and its Events have to do.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cli.shared.gateway.client import SECONDS, Gateway, connected, unreached
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.explaining import read_events
from gateway.decisions.explanation import Explanation, PodEvidence
from gateway.decisions.why import explain
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeUnreachableError, connect

GROUP_VERSIONS = ("v1beta1", "v1alpha2")
"""Versions of scheduling.k8s.io with pod groups: of Kubernetes 1.37, and of 1.36."""

CLAIMS = "/apis/resource.k8s.io/v1"

READ_BY_USERS, THE_GATEWAY = "pod groups and ResourceClaims", "the gateway"
"""What an explanation may have to do without."""

MOST_PENDING = 1000
"""Pods in one answer of the gateway."""


async def explained(pod: str, node: str, options: GatewayOptions) -> Explanation:
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
        async with connected(options) as gateway:
            return await _ask(gateway, pod, node, None, f"{READ_BY_USERS}: {error}")
    try:
        async with connected(options, client) as gateway:
            return await _ask(gateway, pod, node, client)
    except GatewayError as error:
        if error.status == 404:
            raise ConfigurationError(str(error)) from error
        try:
            return await _without_gateway(client, pod, str(error))
        except KubeUnreachableError as gone:
            raise unreached(gone, options) from gone
        except TimeoutError as late:
            raise KubeUnreachableError(str(late)) from late
    except KubeUnreachableError as error:
        if not options.admin:
            raise
        async with connected(options) as gateway:
            return await _ask(gateway, pod, node, None, f"{READ_BY_USERS}: {error}")
    finally:
        await client.close()


async def _ask(
    gateway: Gateway, pod: str, node: str, client: KubeClient | None, without: str = ""
) -> Explanation:
    """Return the gateway's explanation, if need be with what *client* may read."""
    path, query = f"/decisions/{pod}", {"node": node} if node else {}
    found = _decoded(await gateway.get(path, query))
    if client is not None and (more := await _read(client, found)):
        found = _decoded(await gateway.get(path, query | more))
    return replace(found, without=without)


def _decoded(answer: Any) -> Explanation:
    try:
        return msgspec.convert(answer, Explanation)
    except msgspec.ValidationError as error:
        raise GatewayError(
            f"the gateway is of another version than this command: {error}"
        ) from error


async def _read(client: KubeClient, found: Explanation) -> dict[str, str]:
    """Return what the gateway may not read, for the pod of an explanation; see `AskedOfPod`."""
    namespace = found.pod.partition("/")[0]
    folder = f"{CLAIMS}/namespaces/{namespace}/resourceclaims"
    names = found.unread_claims
    try:
        answers = [await client.request("GET", f"{folder}/{n}", timeout=SECONDS) for n in names]
        needed = await _needed(client, namespace, found.group.name) if found.group else 0
    except TimeoutError as error:
        raise KubeUnreachableError(str(error)) from error
    statuses = [(name, each.status) for name, each in zip(names, answers, strict=True)]
    read = {
        "missing": ",".join(name for name, status in statuses if status == 404),
        "claims": ",".join(name for name, status in statuses if status == 200),
        "needed": str(needed or ""),
    }
    return {name: value for name, value in read.items() if value}


async def _needed(client: KubeClient, namespace: str, name: str) -> int:
    """Return how many pods a pod group needs at once; 0 if that is not known."""
    for version in GROUP_VERSIONS:
        path = f"/apis/scheduling.k8s.io/{version}/namespaces/{namespace}/podgroups/{name}"
        answer = await client.request("GET", path, timeout=SECONDS)
        if answer.ok:
            spec = msgspec.json.decode(answer.body).get("spec") or {}
            policy = spec.get("schedulingPolicy") or {}
            return int((policy.get("gang") or {}).get("minCount") or 0)
    return 0


async def _without_gateway(client: KubeClient, pod: str, problem: str) -> Explanation:
    """Return what the pod and its Events show."""
    namespace, _, name = pod.partition("/")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    answer = await client.request("GET", path, timeout=SECONDS)
    if answer.status == 404:
        raise ConfigurationError(f"there is no pod {pod}")
    found = msgspec.json.decode(answer.check().body)
    events = await read_events(client, found)
    known = PodEvidence(pod=found, events=events, why_no_attempt=problem, asked=False)
    return replace(explain(known), without=f"{THE_GATEWAY}: {problem}")


async def ask_pending(namespace: str, options: GatewayOptions) -> tuple[Sequence[Explanation], int]:
    """Return why pods are pending, of one namespace or for "" of all, and how many are.

    Raises:
        GatewayError: The gateway gives no answer; the message has the next step.
    """
    query = {"limit": str(MOST_PENDING), **({"namespace": namespace} if namespace else {})}
    async with connected(options) as gateway:
        answer = await gateway.get("/decisions/pending", query)
    return [_decoded(each) for each in answer["items"]], answer["pods"]
