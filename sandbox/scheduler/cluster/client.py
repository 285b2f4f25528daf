"""A client of the API server: requests, and collections that it follows by list and watch."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import structlog

from moorage.backoff import Backoff
from moorage.models import Pod

_STRATEGIC = "application/strategic-merge-patch+json"
_REQUEST_SECONDS = 30.0
_IDLE_WATCH_SECONDS = 330.0  # a little longer than the timeout that watches ask for
WATCH_SECONDS = 300


class ApiError(Exception):
    """The API server refused a request or cannot be reached.

    Attributes:
        code: The HTTP status, 0 if there was no answer.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Api:
    """A client of one API server; `async with` opens and closes its connections.

    Args:
        url: Where the API server listens, such as http://127.0.0.1:8001.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Api":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"User-Agent": "moorage-sandbox-scheduler"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def list(self, path: str) -> tuple[list[dict[str, Any]], str]:
        """Return all objects of a collection and the resource version to watch from."""
        document = await self._request("GET", path)
        return document.get("items") or [], document["metadata"]["resourceVersion"]

    async def watch(self, path: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield type and object of each change after a resource version, until the stream ends.

        Raises:
            ApiError: The server refused, or ended the stream with an error; 410 asks for a list.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = aiohttp.ClientTimeout(
            sock_connect=_REQUEST_SECONDS, sock_read=_IDLE_WATCH_SECONDS
        )
        async with self._answer("GET", path, timeout, params=query) as response:
            async for line in _lines(response.content):
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise ApiError(int(event["object"].get("code", 0)), str(event["object"]))
                yield event["type"], event["object"]

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind as the default binder does."""
        await self._request(
            "POST",
            f"{_pod_path(pod)}/binding",
            {
                "kind": "Binding",
                "apiVersion": "v1",
                "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
                "target": {"kind": "Node", "name": node},
            },
        )

    async def patch_status(self, pod: Pod, status: dict[str, Any]) -> dict[str, Any]:
        """Change parts of a pod's status and return the pod as it is now."""
        body = {"status": status}
        return await self._request("PATCH", f"{_pod_path(pod)}/status", body, _STRATEGIC)

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod with its own grace period."""
        await self._request("DELETE", _pod_path(pod))

    async def create_event(self, event: dict[str, Any]) -> None:
        """Write an event of events.k8s.io/v1."""
        await self._request("POST", _events_path(event), event)

    async def patch_event(self, event: dict[str, Any], change: dict[str, Any]) -> None:
        """Change an event written before, to count it again."""
        path = f"{_events_path(event)}/{event['metadata']['name']}"
        await self._request("PATCH", path, change, _STRATEGIC)

    async def _request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data else {}
        async with self._answer(method, path, timeout, data=data, headers=headers) as response:
            document: dict[str, Any] = msgspec.json.decode(await response.read())
            return document

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, timeout: aiohttp.ClientTimeout, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("the API server is called inside `async with` only")
        url = self.url + path
        try:
            async with self._session.request(method, url, timeout=timeout, **options) as response:
                if response.status >= 300:
                    raise ApiError(response.status, _message(await response.read()))
                yield response
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise ApiError(0, f"{method} {url} failed: {error or type(error).__name__}") from error


def _pod_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _events_path(event: dict[str, Any]) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"


def _message(text: bytes) -> str:
    try:
        return str(msgspec.json.decode(text)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return text[:200].decode("utf-8", "replace")


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in stream.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


_log = structlog.get_logger()

Handler = Callable[[dict[str, Any]], None]


class Informer:
    """Reports every object of a collection when it comes, changes or goes.

    Args:
        api: The API server.
        path: The collection's path.
        on_set: Called with an object that is new or may have changed.
        on_gone: Called with the last known state of an object that is gone.
    """

    def __init__(self, api: Api, path: str, on_set: Handler, on_gone: Handler) -> None:
        self._api = api
        self._path = path
        self._on_set = on_set
        self._on_gone = on_gone
        self._known: dict[str, dict[str, Any]] = {}
        self._backoff = Backoff(0.1, 5.0)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        version = ""
        while True:
            try:
                version = version or await self._list()
                async for kind, document in self._api.watch(self._path, version):
                    version = document["metadata"]["resourceVersion"]
                    self._backoff.reset()
                    self._apply(kind, document)
            except ApiError as error:
                _log.warning("watch broke", path=self._path, code=error.code, error=str(error))
                if error.code not in (0, 429) and error.code < 500:
                    version = ""  # too old, or something else that a new list cures
            await asyncio.sleep(self._backoff.next())

    def learn(self, document: dict[str, Any]) -> None:
        """Apply what a write returned, without waiting for the watch."""
        self._apply("MODIFIED", document)

    async def _list(self) -> str:
        documents, version = await self._api.list(self._path)
        present = {document["metadata"]["uid"]: document for document in documents}
        for uid in self._known.keys() - present.keys():
            self._on_gone(self._known.pop(uid))
        for document in documents:
            self._set(document)
        self.synced.set()
        return version

    def _apply(self, kind: str, document: dict[str, Any]) -> None:
        if kind == "DELETED":
            if self._known.pop(document["metadata"]["uid"], None):
                self._on_gone(document)
        elif kind in ("ADDED", "MODIFIED"):
            self._set(document)

    def _set(self, document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        known = self._known.get(metadata["uid"])
        # What a write returned comes again through the watch; older states may come after it.
        if known and int(known["metadata"]["resourceVersion"]) >= int(metadata["resourceVersion"]):
            return
        self._known[metadata["uid"]] = document
        self._on_set(document)
