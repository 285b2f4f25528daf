"""What a node asks the API server."""

from pathlib import Path
from typing import Any

import msgspec

from moorage_host.kube import KubeClient, Response
from tools.planes.embedded import Object

TYPES = {"PATCH": "application/merge-patch+json"}


class MissingError(Exception):
    """Something that a pod names does not exist; the message says what."""


class Api:
    """The API server with all rights.

    Attributes:
        host: The folder that stands for the root of the node, for hostPath volumes.
    """

    def __init__(self, client: KubeClient, host: Path) -> None:
        self._client = client
        self.host = host

    async def send(self, method: str, path: str, body: Object | None = None) -> Response:
        """Send a request, whatever the answer is."""
        kind = TYPES.get(method, "application/json")
        data = None if body is None else msgspec.json.encode(body)
        return await self._client.request(method, path, body=data, content_type=kind, timeout=30)

    async def call(self, method: str, path: str, body: Object | None = None) -> Any:
        """Send a request that must succeed; return the answer."""
        return msgspec.json.decode((await self.send(method, path, body)).check().body)

    async def items(self, path: str) -> list[Object]:
        """Return the objects of a collection, each with its kind."""
        answer = await self.call("GET", path)
        kind = {"kind": answer["kind"].removesuffix("List")}
        return [{**kind, **item} for item in answer.get("items") or ()]

    async def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return an object of the core group, None if there is none."""
        answer = await self.send("GET", f"/api/v1/namespaces/{namespace}/{resource}/{name}")
        if answer.status == 404:
            return None
        found: Object = msgspec.json.decode(answer.check().body)
        return found

    async def token(self, account: str, pod: Object, seconds: int, audience: str | None) -> str:
        """Ask for a token of a service account that is bound to a pod, as kubelets do."""
        metadata = pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "uid": metadata["uid"]}
        bound["name"] = metadata["name"]
        spec: Object = {"expirationSeconds": seconds, "boundObjectRef": bound}
        spec["audiences"] = [audience] if audience else []
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        answer = await self.send("POST", path, request)
        if answer.status == 404:
            raise MissingError(f'serviceaccount "{account}" not found')
        token: str = msgspec.json.decode(answer.check().body)["status"]["token"]
        return token
