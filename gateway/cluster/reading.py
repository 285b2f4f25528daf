"""Reads one pod past the watch."""

from urllib.parse import quote

import msgspec

from gateway.cluster.watch.wire import decode_list
from moorage.models import Pod, decode_pod
from moorage_host.kube import KubeClient, KubeError

UNREAD = (KubeError, TimeoutError, msgspec.DecodeError)
"""Why a pod could not be read."""


async def read_pod(
    client: KubeClient, namespace: str, name: str, uid: str, *, timeout: float
) -> Pod | None:
    """Return a pod; None if it is gone. The gateway may list pods, not get one.

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
