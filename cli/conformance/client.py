"""Sends requests to an extender as kube-scheduler's HTTP client does."""

import asyncio
import io
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from cli.conformance.recordings import Verb
from cli.conformance.requests import Answer, Request
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.client import extender_context

IDLE_SECONDS = 90.0
"""How long Go keeps an idle connection."""

MOST_REDIRECTS = 10
"""How many Go follows."""

HEADERS = {
    "User-Agent": "Go-http-client/1.1",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}


class Client:
    """Calls one extender.

    Args:
        config: The extender's entry.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self._verbs = {
            "filter": config.filter_verb,
            "prioritize": config.prioritize_verb,
            "preempt": config.preempt_verb,
            "bind": config.bind_verb,
        }

    async def open(self) -> None:
        """Begin; nothing is sent yet."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_SECONDS, ssl=extender_context(self.config)
            ),
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
            skip_auto_headers=("Accept", "User-Agent"),
            max_line_size=2**16,
            max_field_size=2**16,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    def offers(self, verb: Verb) -> bool:
        """Whether the extender has a verb."""
        return bool(self._verbs[verb])

    def url(self, verb: Verb) -> str:
        """Return where kube-scheduler would send a verb."""
        return f"{self.config.url_prefix.rstrip('/')}/{self._verbs[verb]}"

    async def send(self, request: Request) -> Answer:
        """Send a request and return the answer or the failure; redirects are followed as in Go."""
        url, redirects = self.url(request.verb), list[int]()
        began = time.monotonic()
        while True:
            answer = await self._post(url, request)
            again = answer.status in (307, 308) and "Location" in answer.headers
            if not again or len(redirects) == MOST_REDIRECTS:
                break
            redirects.append(answer.status)
            url = urljoin(url, answer.headers["Location"])
        seconds = time.monotonic() - began
        return replace(answer, seconds=seconds, redirects=tuple(redirects))

    async def _post(self, url: str, request: Request) -> Answer:
        options: dict[str, Any] = {
            "headers": {**HEADERS, **request.headers},
            "data": _pieces(request.body) if request.is_chunked else io.BytesIO(request.body),
            "allow_redirects": False,
        }
        tls = self.config.tls_config
        if tls and tls.server_name:
            options["server_hostname"] = tls.server_name
        try:
            async with self._session.post(url, **options) as response:
                body = await response.read()
                return Answer(status=response.status, headers=response.headers, body=body)
        except TimeoutError:
            return Answer(failure=f'Post "{url}": context deadline exceeded')
        except (aiohttp.ClientError, ValueError, OSError) as error:
            return Answer(failure=f'Post "{url}": {_reason(error)}')


async def connected(config: ExtenderConfig) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to an extender."""
    url = urlsplit(config.url_prefix)
    context: ssl.SSLContext | bool | None = None
    if url.scheme == "https":
        context = extender_context(config)
    port = url.port or (443 if url.scheme == "https" else 80)
    name = config.tls_config.server_name if config.tls_config else ""
    options: dict[str, Any] = {"server_hostname": name} if context and name else {}
    return await asyncio.open_connection(url.hostname, port, ssl=context, **options)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2]
    await asyncio.sleep(0)
    yield body[len(body) // 2 :]


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__
