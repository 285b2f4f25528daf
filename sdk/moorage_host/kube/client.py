"""Sends requests to the API server and hands back raw bodies.

Built by `moorage_host.kube.connect`. The Kubernetes client library supplies addresses, TLS and
tokens; its models are never used, because they cost milliseconds per object.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from moorage_host.kube.errors import KubeStatusError, KubeUnreachableError
from moorage_host.kube.response import Response
from moorage_host.kube.session import open_session, proxy_options

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

CONNECT_TIMEOUT = 10.0

LONGEST_STRETCH = 1 << 16
"""Bytes of a stream after which others may run: a reader that always finds more in its buffer
would never let them."""


class KubeClient:
    """A connection to one API server; the caller closes it."""

    def __init__(self, api: "ApiClient") -> None:
        from kubernetes_asyncio.config import ConfigException

        self._failures = (OSError, aiohttp.ClientError, ConfigException)
        self._api = api
        self._session = open_session(api)
        self._way = proxy_options(api.configuration)

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return str(self._api.configuration.host)

    async def token(self) -> str:
        """Return the bearer token that requests carry now; "" if they carry none.

        Raises:
            KubeUnreachableError: The kubeconfig's plugin for credentials failed.
        """
        try:
            return (await self._authorization()).removeprefix("Bearer ")
        except self._failures as error:
            raise KubeUnreachableError(f"no credentials for {self.host}: {error}") from error

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float,
    ) -> Response:
        """Send a request and read the whole answer, of any status.

        Args:
            method: The HTTP method, in upper case.
            path: The path below the API server's URL, percent-encoded, with a leading slash.
            query: Query parameters, not encoded.
            body: The body as it goes over the wire.
            content_type: The media type of the body.
            timeout: Time for everything including reading the answer, in seconds.

        Raises:
            KubeUnreachableError: No answer came.
            TimeoutError: No complete answer came in time.
        """
        what = f"{method} {path}"
        headers = {"Content-Type": content_type} if body is not None else {}
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            options = await self._options(headers, limit)
            async with self._session.request(
                method, self._url(path, query), data=body, **options
            ) as answer:
                return await _read(what, answer)
        except self._failures as error:
            raise _explained(error, what, self.host, timeout) from error

    async def stream_lines(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[bytes, None]:
        """Follow an answer that does not end, such as a watch, line by line.

        Args:
            path: The path below the API server's URL, percent-encoded, with a leading slash.
            query: Query parameters, not encoded.
            silence: The longest time without a byte, in seconds.
            opened: Called when the API server has accepted the request.

        Yields:
            The lines that are not empty, without their ends.

        Raises:
            KubeStatusError: The API server refuses.
            KubeUnreachableError: The connection fails or breaks.
            TimeoutError: Nothing was heard for longer than `silence`.
        """
        what = f"GET {path}"
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=min(CONNECT_TIMEOUT, silence), sock_read=silence
        )
        try:
            options = await self._options({}, limit)
            async with self._session.get(self._url(path, query), **options) as answer:
                if answer.status != 200:
                    (await _read(what, answer)).check()
                opened()
                rest, since_pause = b"", 0
                while chunk := await answer.content.readany():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if line:
                            yield line
                    since_pause += len(chunk)
                    if since_pause > LONGEST_STRETCH:
                        since_pause = 0
                        await asyncio.sleep(0)
        except self._failures as error:
            raise _explained(error, what, self.host, silence) from error

    async def open_websocket(
        self, path: str, *, query: Mapping[str, str], protocol: str, timeout: float
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, which the caller closes.

        Args:
            path: The path below the API server's URL, percent-encoded, with a leading slash.
            query: Query parameters, not encoded.
            protocol: The subprotocol.
            timeout: Time until it is open, in seconds.

        Raises:
            KubeStatusError: The API server refuses.
            KubeUnreachableError: The connection fails.
            TimeoutError: It is not open in time.
        """
        what = f"GET {path}"
        try:
            options = await self._options({}, aiohttp.ClientTimeout())
            del options["timeout"], options["allow_redirects"]
            async with asyncio.timeout(timeout):
                tunnel: aiohttp.ClientWebSocketResponse = await self._session.ws_connect(
                    self._url(path, query), protocols=(protocol,), max_msg_size=0, **options
                )
        except aiohttp.WSServerHandshakeError as refusal:
            # Its body, which has the reason, is not kept; a request without an upgrade gets it too.
            answer = await self.request("GET", path, query=query, timeout=timeout)
            if answer.status == refusal.status:
                answer.check()
            raise KubeStatusError(what, status=refusal.status, message=refusal.message) from refusal
        except self._failures as error:
            raise _explained(error, what, self.host, timeout) from error
        return tunnel

    async def close(self) -> None:
        """Close all connections; running requests fail."""
        await self._session.close()
        await self._api.close()

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        text = f"{self.host}{path}"
        return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)

    async def _options(
        self, headers: dict[str, str], timeout: aiohttp.ClientTimeout
    ) -> dict[str, Any]:
        headers = {**self._api.default_headers, "Accept": "application/json", **headers}
        if authorization := await self._authorization():
            headers["Authorization"] = authorization
        return {"headers": headers, "timeout": timeout, "allow_redirects": False, **self._way}

    async def _authorization(self) -> str:
        configuration = self._api.configuration
        if "BearerToken" not in configuration.api_key:
            return ""
        # Runs the hook that renews tokens.
        return str(await configuration.get_api_key_with_prefix("BearerToken"))


async def _read(what: str, answer: aiohttp.ClientResponse) -> Response:
    body = await answer.read()
    return Response(what=what, status=answer.status, headers=answer.headers, body=body)


def _explained(error: Exception, what: str, host: str, limit: float) -> Exception:
    if isinstance(error, TimeoutError):
        return TimeoutError(f"{what}: nothing heard from {host} for {limit:g} s")
    if isinstance(error, aiohttp.ClientError | OSError):
        return KubeUnreachableError(f"{what}: cannot reach {host}: {error}")
    return KubeUnreachableError(f"{what}: no credentials for {host}: {error}")
