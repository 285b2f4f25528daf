"""Pods at the API server: how they are followed, what they show while they wait, reading one."""

from collections.abc import Callable, Sequence
from sys import intern
from urllib.parse import quote

import msgspec
import structlog

from gateway.cluster.wire import Resource, decode_list
from moorage.models import Pod, decode_passing_pod, decode_pod
from moorage.models.decoding import MAX_CONSTRAINTS, constraints_size, share_changed_pod, share_pod
from moorage_host.kube import KubeClient, KubeError

UNREAD = (KubeError, TimeoutError, msgspec.DecodeError)
"""Why a pod could not be read."""


MESSAGE = 4096
"""Characters of a pod's condition that are read; kube-scheduler's reasons take tens each."""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """What a pod without a node shows about why it has none.

    Attributes:
        since: Since when its condition PodScheduled is so.
        reason: That of the condition; "" if the condition is not false.
        message: What kube-scheduler says.
        claims: The ResourceClaims that are to be made from templates, and are not yet.
        named: The ResourceClaims that it names; whether they exist is not known.
    """

    since: str = ""
    reason: str = ""
    message: str = ""
    claims: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def failure(self) -> str:
        """The failed attempt; "" if none. Two attempts differ if anything in the condition does."""
        return f"{self.since} {self.reason} {self.message}" if self.reason else ""


class SeenPod(msgspec.Struct, frozen=True):
    """A pod, what it shows while it has no node, and its size in bytes as it was sent."""

    pod: Pod
    waiting: Waiting | None
    size: int


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    message: str | None = ""
    last_transition_time: str | None = ""


class _Claim(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_claim_template_name: str | None = None
    resource_claim_name: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    resource_claims: list[_Claim] | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    resource_claim_statuses: list[_Claim] | None = None


class _Header(msgspec.Struct):
    spec: _Spec | None = None
    status: _Status | None = None


_log = structlog.get_logger()
_decode = msgspec.json.Decoder(_Header).decode


def waiting_of(pod: bytes | msgspec.Raw) -> Waiting:
    """Return what a pod's JSON shows; nothing if it is not readable.

    The failure ends the claim of the attempt.
    """
    try:
        header = _decode(pod)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Waiting()
    spec, status = header.spec or _Spec(), header.status or _Status()
    made = {each.name for each in status.resource_claim_statuses or ()}
    claims = tuple(
        f"{each.name} (of template {each.resource_claim_template_name})"
        for each in spec.resource_claims or ()
        if each.resource_claim_template_name and each.name not in made
    )
    named = tuple(filter(None, (each.resource_claim_name for each in spec.resource_claims or ())))
    for each in status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False":
            message = intern((each.message or "")[:MESSAGE])  # equal pods have the same
            since, reason = each.last_transition_time or "", each.reason or "Unknown"
            return Waiting(since, reason, message, claims, named)
    return Waiting(claims=claims, named=named) if claims or named else NOTHING_SHOWN


NOTHING_SHOWN = Waiting()


def decode_seen_pod(
    raw: bytes | msgspec.Raw, known: Callable[[str], Pod | None] = lambda _: None
) -> SeenPod:
    """Read a pod, and what it shows while it has no node.

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
    waiting = None if pod.spec.node_name else waiting_of(raw)
    return SeenPod(shared, waiting, memoryview(raw).nbytes)


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
    """Return a pod past the watch; None if it is gone.

    Raises:
        KubeError: The API server refuses, or cannot be reached.
        TimeoutError: It does not answer within *timeout* seconds.
        msgspec.DecodeError: Its answer is no list of pods.
    """
    pods = map(decode_pod, await list_pod(client, namespace, name, timeout=timeout))
    return next((pod for pod in pods if pod.uid == uid), None)


async def list_pod(
    client: KubeClient, namespace: str, name: str, *, timeout: float
) -> Sequence[msgspec.Raw]:
    """Return a pod as JSON, none if it is gone: the gateway may list pods, not get one."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    query = {"fieldSelector": f"metadata.name={name}"}
    answer = await client.request("GET", path, query=query, timeout=timeout)
    return decode_list(answer.check().body).items or ()
