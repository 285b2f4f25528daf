"""The writes to the Kubernetes API; no other module of the binder knows its paths and bodies."""

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage import Binding
from moorage.models import Pod, decode_pod
from moorage_host.kube import KubeClient
from moorage_host.tracing.spans import step

STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class PodClient:
    """One API server.

    Every method raises KubeStatusError if the API server refuses, KubeUnreachableError or
    TimeoutError if it does not answer: then nobody knows whether the request was carried out.

    Args:
        client: The connection; the caller closes it.
        request_timeout: Time for one request that is no part of a bind, in seconds.
    """

    def __init__(self, client: KubeClient, *, request_timeout: float) -> None:
        self._client = client
        self._timeout = request_timeout

    async def create_binding(self, binding: Binding, *, dry_run: bool = False) -> None:
        """Bind a pod that is not bound yet, or only have that checked.

        The uid makes it safe to repeat. The caller limits the time.
        """
        metadata: dict[str, Any] = {
            "name": binding.name,
            "namespace": binding.namespace,
            "uid": binding.uid,
        }
        target = {"apiVersion": "v1", "kind": "Node", "name": binding.node}
        if binding.annotations:
            metadata["annotations"] = dict(binding.annotations)
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        path = f"/api/v1/namespaces/{binding.namespace}/pods/{binding.name}/binding"
        if dry_run:
            path += "?dryRun=All"
        with step("POST pods/binding"):
            answer = await self._client.post(path, msgspec.json.encode(body))
        answer.check()

    async def read_pod(self, binding: Binding, *, timeout: float) -> Pod:
        """Return the pod of that name as it is now; it may have another uid."""
        path = f"/api/v1/namespaces/{binding.namespace}/pods/{binding.name}"
        with step("GET pods"):
            answer = await self._client.request("GET", path, timeout=timeout)
        return decode_pod(answer.check().body)

    async def set_condition(
        self, namespace: str, name: str, uid: str, condition: Mapping[str, Any]
    ) -> None:
        """Write a condition into the status of the pod with this uid."""
        body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        answer = await self._client.request(
            "PATCH",
            path,
            body=msgspec.json.encode(body),
            content_type=STRATEGIC_PATCH,
            timeout=self._timeout,
        )
        answer.check()
