"""Pods at the API server: how they are followed, what shows a failed attempt, and reading one."""

from collections.abc import Callable
from urllib.parse import quote

import msgspec
import structlog

from gateway.cluster.reflector import Resource, decode_list
from moorage.models import Pod, decode_passing_pod, decode_pod
from moorage.models.decoding import MAX_CONSTRAINTS, constraints_size, share_changed_pod, share_pod
from moorage_host.kube import KubeClient, KubeError

UNREAD = (KubeError, TimeoutError, msgspec.DecodeError)
"""Why a pod could not be read."""


class SeenPod(msgspec.Struct, frozen=True):
    """A pod, the failed attempt that its status shows, and its size in bytes as it was sent."""

    pod: Pod
    failure: str
    size: int


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    message: str | None = ""
    last_transition_time: str | None = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Header(msgspec.Struct):
    status: _Status | None = None


_log = structlog.get_logger()
_decode = msgspec.json.Decoder(_Header).decode


def failure_of(pod: bytes | msgspec.Raw) -> str:
    """Return the failed attempt that a pod's JSON shows; "" if none or not readable.

    The text differs between two attempts if anything in the pod's condition does. It ends the claim
    of the attempt.
    """
    try:
        status = _decode(pod).status
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    for condition in (status and status.conditions) or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.last_transition_time} {condition.reason} {condition.message}"
    return ""


def decode_seen_pod(
    raw: bytes | msgspec.Raw, known: Callable[[str], Pod | None] = lambda _: None
) -> SeenPod:
    """Read a pod, and whether its last attempt failed if it has no node.

    What has not changed it shares with what *known* returns for its UID: most events change its
    node, its phase, or nothing that is read. One with too many constraints, see `MAX_CONSTRAINTS`,
    is kept without them.

    Raises:
        msgspec.DecodeError: It is no pod.
    """
    pod = decode_passing_pod(raw)
    before = known(pod.metadata.uid)
    shared = share_changed_pod(pod, before) if before is not None else None
    if shared is None:
        if (size := constraints_size(pod)) > MAX_CONSTRAINTS:
            name = f"{pod.namespace}/{pod.name}"
            _log.warning("A pod is kept without its constraints", pod=name, bytes=size)
        shared = share_pod(pod)
    failure = "" if pod.spec.node_name else failure_of(raw)
    return SeenPod(shared, failure, memoryview(raw).nbytes)


PODS = Resource(
    path="/api/v1/pods",
    key="uid",
    decode=decode_seen_pod,
    # A pod that ends no longer matches, so the API server reports it as deleted.
    query={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)
"""All pods that have not ended."""


async def read_pod(
    client: KubeClient, namespace: str, name: str, uid: str, *, timeout: float
) -> Pod | None:
    """Return a pod past the watch; None if it is gone. The gateway may list pods, not get one.

    Raises:
        KubeError: The API server refuses, or cannot be reached.
        TimeoutError: It does not answer within *timeout* seconds.
        msgspec.DecodeError: Its answer is no list of pods.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    query = {"fieldSelector": f"metadata.name={name}"}
    answer = await client.request("GET", path, query=query, timeout=timeout)
    pods = map(decode_pod, decode_list(answer.check().body).items or ())
    return next((pod for pod in pods if pod.uid == uid), None)
