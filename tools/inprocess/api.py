"""A client's view of the embedded API server, for tests that change the cluster from outside."""

from collections.abc import Callable
from typing import Any

import msgspec

from moorage_host.kube import KubeClient
from sandbox.apiserver import ApiServer, Fault
from sandbox.apiserver.requests.patches import merge
from sandbox.apiserver.resources.table import parse
from sandbox.apiserver.store.binding import bind

Object = dict[str, Any]
COUNTED = 1000


class Api:
    """Creates and changes objects, and counts requests.

    Objects are put straight into the server's state, so that this works while nothing listens.
    """

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.faults = server.faults

    def create(self, path: str, obj: Object) -> Object:
        target = parse(f"{path}/{obj['metadata']['name']}")
        return self.server.cluster.create(target, obj).object

    def pod(self, name: str = "web", *, labels: Object | None = None, **spec: Any) -> Object:
        """Create a pod in the namespace default."""
        metadata: Object = {"name": name, "namespace": "default", "labels": labels or {}}
        spec = {"containers": [{"name": "main", "image": "nginx"}], **spec}
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return self.create("/api/v1/namespaces/default/pods", obj)

    def node(self, name: str) -> Object:
        obj: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        return self.create("/api/v1/nodes", obj)

    def delete(self, path: str) -> None:
        self.server.cluster.delete(parse(path))

    def label(self, path: str, **labels: str) -> None:
        old = self.read(path)
        obj = {**old, "metadata": {**old["metadata"], "labels": labels}}
        self.server.cluster.update(parse(path), obj)

    def set_status(self, pod: str, **status: Any) -> None:
        """Replace the status of a pod in the namespace default."""
        path = f"/api/v1/namespaces/default/pods/{pod}"
        obj = {**self.read(path), "status": status}
        self.server.cluster.update(parse(f"{path}/status"), obj)

    def merge(self, path: str, change: Object) -> None:
        """Change fields of an object, as a merge patch does."""
        self.replace(path, merge(self.read(path), change))

    def bind(self, pod: str, node: str) -> None:
        """Bind a pod in the namespace default."""
        target = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        path = f"/api/v1/namespaces/default/pods/{pod}"
        bind(self.server.cluster, parse(path), target, dry_run=False)

    def replace(self, path: str, obj: Object) -> None:
        self.server.cluster.update(parse(path), obj)

    def read(self, path: str) -> Object:
        return self.server.cluster.get(parse(path)).object

    def read_pod(self, name: str = "web") -> Object:
        return self.read(f"/api/v1/namespaces/default/pods/{name}")

    def node_of(self, name: str = "web") -> str | None:
        node: str | None = self.read_pod(name)["spec"].get("nodeName")
        return node

    def fault(self, verb: str, resource: str, **effects: Any) -> None:
        self.faults.add(Fault(verb=verb, resource=resource, **effects))

    def count(self, verb: str, resource: str, **effects: Any) -> Callable[[], int]:
        """Count requests from now on, and let each suffer the same effects."""
        self.fault(verb, resource, times=COUNTED, **effects)

        def counted() -> int:
            left = [f for f in self.faults.waiting() if (f.verb, f.resource) == (verb, resource)]
            return COUNTED - left[-1].times

        return counted


async def send(client: KubeClient, method: str, path: str, body: Object | None = None) -> Object:
    """Send a request as any client would; fail if it is refused."""
    response = await client.request(
        method,
        path,
        body=None if body is None else msgspec.json.encode(body),
        content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
        timeout=10,
    )
    answer: Object = msgspec.json.decode(response.check().body)
    return answer
