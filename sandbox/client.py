"""A client of an API server without authentication: requests, and collections that it follows.

The stand-in for kube-scheduler and `moorage up` use it.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import structlog

from moorage.backoff import Backoff
from moorage_host.kube import KubeClient, KubeError, KubeStatusError
from moorage_host.kube.config import ApiServerAccess

_log = structlog.get_logger()

_REQUEST_SECONDS = 30.0
_IDLE_WATCH_SECONDS = 330.0  # a little longer than the timeout that watches ask for
WATCH_SECONDS = 300

SYNCED = "SYNCED"
"""What `Api.follow` yields after a full list, with an empty object."""


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
        self._client: KubeClient | None = None

    async def __aenter__(self) -> "Api":
        async def nobody() -> str:
            return ""

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        server = ApiServerAccess(
            host=self.url, tls=tls, authorization=nobody, options={"proxy": None}
        )
        self._client = KubeClient(server)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    @property
    def client(self) -> KubeClient:
        """What sends the requests."""
        if self._client is None:
            raise RuntimeError("the API server is called inside `async with` only")
        return self._client

    async def list(self, path: str) -> tuple[list[dict[str, Any]], str]:
        """Return all objects of a collection and the resource version to watch from."""
        document = await self.request("GET", path)
        return document.get("items") or [], document["metadata"]["resourceVersion"]

    async def watch(self, path: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield type and object of each change after a resource version, until the stream ends.

        Raises:
            ApiError: The server refused, or ended the stream with an error; 410 asks for a list.
        """
        path, _, selectors = path.partition("?")
        query = {
            **dict(parse_qsl(selectors)),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        lines = self.client.stream_lines(path, query=query, silence=_IDLE_WATCH_SECONDS)
        with _refusals():
            async with aclosing(lines):
                async for line in lines:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise ApiError(int(event["object"].get("code", 0)), str(event["object"]))
                    yield event["type"], event["object"]

    async def follow(self, path: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield all objects of a collection as ADDED, then what changes, for ever.

        After a break it goes on where it was, or lists again: then what is gone comes as DELETED,
        the rest as ADDED.
        """
        known: dict[str, dict[str, Any]] = {}
        version, backoff = "", Backoff(0.1, 5.0)
        while True:
            try:
                if not version:
                    documents, version = await self.list(path)
                    present = {document["metadata"]["uid"]: document for document in documents}
                    for uid in known.keys() - present.keys():
                        yield "DELETED", known[uid]
                    known = present
                    for document in documents:
                        yield "ADDED", document
                    yield SYNCED, {}
                async for kind, document in self.watch(path, version):
                    version = document["metadata"]["resourceVersion"]
                    backoff.reset()
                    if kind == "DELETED":
                        known.pop(document["metadata"]["uid"], None)
                    elif kind != "BOOKMARK":
                        known[document["metadata"]["uid"]] = document
                    if kind != "BOOKMARK":
                        yield kind, document
            except ApiError as error:
                _log.warning("watch broke", path=path, code=error.code, error=str(error))
                if error.code not in (0, 429) and error.code < 500:
                    version = ""  # too old, or something else that a new list cures
            await asyncio.sleep(backoff.next())

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """Send a request and return the object in the answer.

        Raises:
            ApiError: The server refused or did not answer.
        """
        data = None if body is None else msgspec.json.encode(body)
        with _refusals():
            answer = await self.client.request(
                method, path, body=data, content_type=content_type, timeout=_REQUEST_SECONDS
            )
            document: dict[str, Any] = msgspec.json.decode(answer.check().body)
        return document


@contextmanager
def _refusals() -> Iterator[None]:
    """Make an ApiError of whatever the client raises."""
    try:
        yield
    except KubeStatusError as error:
        raise ApiError(error.status, error.message) from error
    except (KubeError, TimeoutError, msgspec.DecodeError) as error:
        raise ApiError(0, str(error)) from error


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
        self._versions: dict[str, int] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        async for kind, document in self._api.follow(self._path):
            if kind == SYNCED:
                self.synced.set()
            elif kind != "DELETED":
                self.learn(document)
            elif self._versions.pop(document["metadata"]["uid"], None):
                self._on_gone(document)

    def learn(self, document: dict[str, Any]) -> None:
        """Take in an object, also one that a write returned, which the watch reports again."""
        uid, version = document["metadata"]["uid"], int(document["metadata"]["resourceVersion"])
        if version > self._versions.get(uid, 0):  # older states may come after it
            self._versions[uid] = version
            self._on_set(document)
