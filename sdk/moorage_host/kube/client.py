"""Sends requests to the API server and hands back raw bodies.

The Kubernetes client library's models are never used, because they cost milliseconds per object,
nor is its session: that asks a thread for the environment's proxies, and another one for
`~/.netrc`, before each request, which takes longer than the request itself.
"""

import asyncio
import functools
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.helpers import get_env_proxy_for_url
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from moorage_host.kube.config import SERVICE_ACCOUNT, ApiServerAccess, find_server
from moorage_host.kube.response import (
    UNREADABLE,
    KubeAnswerError,
    KubeStatusError,
    KubeUnreachableError,
    Response,
)

CONNECT_TIMEOUT = 10.0

PAGE_SIZE = 500
"""Objects in one answer to `items`."""

LONGEST_STRETCH = 1 << 16
"""Bytes of a stream after which others may run: a reader that always finds more in its buffer
would never let them."""

LONGEST_BODY = 1 << 28
"""Bytes of an answer, uncompressed: a page of 500 objects of half a megabyte each."""

LONGEST_LINE = 1 << 24
"""Bytes of a line of a stream; an API server stores no object of more than 1.5 MB."""

MOST_PAGES = 10_000
"""Pages of a list: 5,000,000 objects."""

READ_AHEAD = 1 << 21
"""Bytes of an answer that may wait to be read; lines of a watch are up to 1.5 MB long."""

_FAILURES = (OSError, aiohttp.ClientError)

_TARGET = re.compile("/[!-~]*")
"""What may stand in the first line of a request as it is."""

_HEADERS = {"User-Agent": "moorage", "Accept": "application/json"}


class ListIdentity(msgspec.Struct, frozen=True, rename="camel"):
    """How far a list is true, and where its next page is."""

    resource_version: str
    next_page: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, frozen=True):
    """A list, or a page of it; what has no version, such as `{}` or a Status, is none."""

    metadata: ListIdentity
    items: list[msgspec.Raw] | None = None


async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    refresh_interval: float = 60.0,
) -> "KubeClient":
    """Return a client for the API server; no request is sent yet.

    Args:
        kubeconfig: A kubeconfig file. Without one, the pod's service account is used if there is
            one, else the files of the environment variable KUBECONFIG, else ~/.kube/config.
        context: A context of the kubeconfig instead of its current one.
        service_account: The folder with a service account's token and ca.crt.
        refresh_interval: How often to look for a new token, in seconds.

    Raises:
        ConfigurationError: There is no configuration, or it is broken.
    """
    return KubeClient(await find_server(kubeconfig, context, service_account, refresh_interval))


class KubeClient:
    """A connection to one API server; the caller closes it."""

    def __init__(self, server: ApiServerAccess) -> None:
        self._server = server
        # Callers bound what they send; a limit here would let a burst of writes starve a watch.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=server.tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_AHEAD,
        )
        # A proxy comes from the kubeconfig, else from the environment (HTTPS_PROXY, NO_PROXY ...).
        proxy = {} if "proxy" in server.options else _environment_proxy(server.host)
        self._way = {"allow_redirects": False, **proxy, **server.options}
        # What `post` has aiohttp connect for, and the head of what it writes.
        url = URL(server.host)
        self._way_of_posts = aiohttp.ClientRequest(
            "POST",
            url,
            loop=asyncio.get_running_loop(),
            response_class=aiohttp.ClientResponse,
            session=self._session,
            ssl=True,
            server_hostname=server.options.get("server_hostname"),
        )
        host = self._way_of_posts.headers["Host"]
        fields = {**_HEADERS, "Host": host, "Content-Type": "application/json"}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._prefix = url.raw_path.rstrip("/")

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return self._server.host

    @property
    def namespace(self) -> str:
        """The namespace of this process, or of the kubeconfig's context."""
        return self._server.namespace

    @property
    def certificate(self) -> tuple[str, str | None] | None:
        """The files of the client certificate and its key; None without one."""
        return self._server.certificate

    async def token(self) -> str:
        """Return the bearer token that requests carry now; "" if they carry none."""
        return (await self._server.authorization()).removeprefix("Bearer ")

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
            KubeAnswerError: The answer is longer than LONGEST_BODY.
            TimeoutError: No complete answer came in time.
        """
        try:
            headers = await self._headers()
            if body is not None:
                headers = {**headers, "Content-Type": content_type}
            async with self._session.request(
                method,
                self._url(path, query),
                data=body,
                headers=headers,
                timeout=_limit(timeout),
                **self._way,
            ) as answer:
                content = await _read_all(answer.content, f"{method} {path}")
        except _FAILURES as error:
            raise _explained(error, f"{method} {path}", self.host, timeout) from error
        return Response(f"{method} {path}", answer.status, answer.headers, content)

    async def items(
        self, path: str, *, query: Mapping[str, str] | None = None, timeout: float
    ) -> list[msgspec.Raw]:
        """Return the objects of a list as JSON, read page by page; *timeout* is for each page.

        Raises the same as `request`, and KubeStatusError if the API server refuses, or
        KubeAnswerError if the answer is no list, as from something before the API server.
        """
        items: list[msgspec.Raw] = []
        page = {"limit": str(PAGE_SIZE), **(query or {})}
        for _ in range(MOST_PAGES):
            answer = (await self.request("GET", path, query=page, timeout=timeout)).check()
            try:
                found = msgspec.json.decode(answer.body, type=ObjectList)
            except UNREADABLE as error:
                raise KubeAnswerError(f"{answer.what}: the answer is no list: {error}") from error
            items += found.items or ()
            if not found.metadata.next_page:
                return items
            page["continue"] = found.metadata.next_page
        raise KubeAnswerError(f"GET {path}: a list of more than {MOST_PAGES} pages")

    async def post(self, path: str, body: bytes) -> Response:
        """Send a POST as `request` does, for a fifth of its processor time; the caller limits it.

        It is written onto a connection of the session as one text, without a request object, an
        answer object and timers of its own. Through a proxy it goes the usual way.
        """
        if "proxy" in self._way or not _TARGET.fullmatch(path):
            return await self.request("POST", path, body=body, timeout=0.0)
        what, head = f"POST {path}", self._head
        if authorization := await self._server.authorization():
            head = f"{head}Authorization: {authorization}\r\n"
        text = f"POST {self._prefix}{path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n"
        try:
            connector = self._session.connector
            assert connector is not None  # noqa: S101 - until the session is closed
            connection = await connector.connect(self._way_of_posts, [], _limit(0.0))
            try:
                protocol = connection.protocol
                assert protocol is not None and protocol.transport is not None  # noqa: S101, PT018
                protocol.set_response_params(read_bufsize=READ_AHEAD)
                protocol.transport.write(text.encode() + body)
                message, payload = await protocol.read()
                content = bytearray()  # as in `_read_all`, without its call
                while part := await payload.readany():
                    content += part
                    if len(content) > LONGEST_BODY:
                        raise _too_long(what)  # noqa: TRY301 - the connection is closed
            except BaseException:
                connection.close()  # the answer may still come, and is nobody else's
                raise
            connection.release()
        except (*_FAILURES, HttpProcessingError) as error:
            raise _explained(error, what, self.host, 0.0) from error
        return Response(what, message.code, message.headers, bytes(content))

    async def stream_lines(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[bytes, None]:
        """Follow an answer that does not end, such as a watch, line by line, without empty ones.

        Args:
            path: As in `request`.
            query: Query parameters, not encoded.
            silence: The longest time without a whole line, in seconds; up to twice as long for
                one that comes byte by byte.
            opened: Called when the API server has accepted the request.

        Raises:
            KubeStatusError: The API server refuses.
            KubeUnreachableError: The connection fails or breaks.
            KubeAnswerError: A line is longer than LONGEST_LINE.
            TimeoutError: Nothing was heard for longer than `silence`.
        """
        what = f"GET {path}"
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=min(CONNECT_TIMEOUT, silence), sock_read=silence
        )
        try:
            async with self._session.get(
                self._url(path, query), headers=await self._headers(), timeout=limit, **self._way
            ) as answer:
                if answer.status != 200:
                    async with asyncio.timeout(silence):
                        body = await _read_all(answer.content, what)
                    Response(what, answer.status, answer.headers, body).check()
                opened()
                clock, since_pause = asyncio.get_running_loop().time, 0
                rest, begun = bytearray(), clock()
                while chunk := await answer.content.readany():
                    if b"\n" in chunk:
                        *lines, last = (bytes(rest) + chunk).split(b"\n")
                        rest, begun = bytearray(last), clock()
                        for line in lines:
                            if line:
                                yield line
                    else:  # the beginning of a line, in as many pieces as there may be
                        rest += chunk
                        if clock() - begun > silence:
                            raise TimeoutError
                    if len(rest) > LONGEST_LINE:
                        raise KubeAnswerError(f"{what}: a line of more than {LONGEST_LINE} bytes")
                    since_pause += len(chunk)
                    if since_pause > LONGEST_STRETCH:
                        since_pause = 0
                        await asyncio.sleep(0)
                if rest:  # not to be lost: an event without an end of line, or half of one
                    yield bytes(rest)
        except _FAILURES as error:
            raise _explained(error, what, self.host, silence) from error

    async def open_websocket(
        self, path: str, *, query: Mapping[str, str], protocol: str, timeout: float
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket with a subprotocol in *timeout* seconds; the caller closes it.

        Raises the same as `stream_lines`.
        """
        what = f"GET {path}"
        try:
            options = {"headers": await self._headers(), **self._way}
            del options["allow_redirects"]
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
        except _FAILURES as error:
            raise _explained(error, what, self.host, timeout) from error
        return tunnel

    async def close(self) -> None:
        """Close all connections; running requests fail."""
        await self._session.close()

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        text = f"{self._server.host}{path}"
        return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)

    async def _headers(self) -> dict[str, str]:
        authorization = await self._server.authorization()
        return {**_HEADERS, "Authorization": authorization} if authorization else _HEADERS


@functools.lru_cache(maxsize=64)
def _limit(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)


async def _read_all(content: aiohttp.StreamReader, what: str) -> bytes:
    """Read an answer to its end, uncompressed, as far as it may go."""
    parts, size = [], 0
    while part := await content.readany():
        parts.append(part)
        size += len(part)
        if size > LONGEST_BODY:
            raise _too_long(what)
    return b"".join(parts)


def _too_long(what: str) -> KubeAnswerError:
    return KubeAnswerError(f"{what}: an answer of more than {LONGEST_BODY} bytes")


def _explained(error: Exception, what: str, host: str, limit: float) -> Exception:
    if isinstance(error, TimeoutError):
        return TimeoutError(f"{what}: nothing heard from {host} for {limit:g} s")
    return KubeUnreachableError(f"{what}: cannot reach {host}: {error}")


def _environment_proxy(host: str) -> dict[str, Any]:
    try:
        proxy, auth = get_env_proxy_for_url(URL(host))
    except LookupError:
        return {}
    return {"proxy": proxy.with_user(auth.login).with_password(auth.password) if auth else proxy}
