"""A plain HTTP client of the API server, and objects to send."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from tools.planes.objects import binding

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RACK: Object = {"metadata": {"name": "r1"}}
RACKS = "/apis/example.com/v1/namespaces/default/racks"


class Reply:
    """A response that has been read."""

    def __init__(self, code: int, headers: dict[str, str], text: bytes) -> None:
        self.code = code
        self.headers = headers
        self.text = text

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Stream:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Object:
        """Return the next event; fail after 50 s of silence or at the end."""
        async with asyncio.timeout(50):
            line = await self._response.content.readline()
        assert line, "the watch has ended"
        event: Object = msgspec.json.decode(line)
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return the types and names of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def rest(self) -> list[Object]:
        """Return what comes until the server ends the watch."""
        async with asyncio.timeout(50):
            text = await self._response.content.read()
        return [msgspec.json.decode(line) for line in text.splitlines()]


class Http:
    """Requests to one API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def send(
        self, method: str, path: str, body: object = None, *, media: str = "", accept: str = ""
    ) -> Reply:
        headers = {"Content-Type": media or "application/json"}
        if accept:
            headers["Accept"] = accept
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        async with self.session.request(method, path, data=data, headers=headers) as response:
            text = await response.read()
            return Reply(response.status, dict(response.headers), text)

    async def get(self, path: str, *, accept: str = "") -> Reply:
        return await self.send("GET", path, accept=accept)

    async def create(self, path: str, body: object) -> Object:
        """Create an object that must be accepted."""
        reply = await self.send("POST", path, body)
        assert reply.code == 201, reply.text
        created: Object = reply.body
        return created

    async def names(self, path: str) -> list[str]:
        """Return the names in a list."""
        reply = await self.get(path)
        assert reply.code == 200, reply.text
        return [item["metadata"]["name"] for item in reply.body["items"]]

    async def patch(self, path: str, body: object, kind: str = "merge-patch+json") -> Reply:
        return await self.send("PATCH", path, body, media=f"application/{kind}")

    async def bind(self, name: str, node: str) -> Reply:
        return await self.send("POST", f"{PODS}/{name}/binding", binding(name, node))

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Stream]:
        """Open a watch that must be accepted."""
        async with self.session.get(path, params={"watch": "1", **query}) as response:
            assert response.status == 200, await response.text()
            yield Stream(response)


def pod(name: str = "web", **spec: Any) -> Object:
    """Return a pod that the server accepts."""
    containers = [{"name": "main", "image": "web:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def finalized(obj: Object, *finalizers: str) -> Object:
    """Return the object with finalizers."""
    return obj | {"metadata": obj["metadata"] | {"finalizers": list(finalizers)}}


def node(name: str = "n1", **status: Any) -> Object:
    """Return a node that the server accepts."""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": capacity, **status},
    }


def version(name: str = "v1", *, storage: bool = True, **fields: Any) -> Object:
    return {"name": name, "served": True, "storage": storage, **fields}


def definition(*versions: Object, scope: str = "Namespaced") -> Object:
    """Return a definition of racks in example.com."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "racks.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "racks", "kind": "Rack", "shortNames": ["rk"]},
            "scope": scope,
            "versions": list(versions) or [version()],
        },
    }
