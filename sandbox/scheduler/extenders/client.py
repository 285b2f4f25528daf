"""Calls one extender as kube-scheduler's HTTP client does, byte for byte."""

from typing import Any

import aiohttp

from moorage.models import Pod
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.answers import AnswerError, decode_answer
from sandbox.scheduler.extenders.tls import extender_context

_IDLE_SECONDS = 90.0  # Go's IdleConnTimeout


class ExtenderError(Exception):
    """An extender did not do what it was asked; the message is what users read."""


class Extender:
    """One extender's client: `async with` opens and closes its connections.

    Args:
        config: The extender's part of the configuration.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Extender":
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_IDLE_SECONDS, ssl=extender_context(self.config)
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
            skip_auto_headers=("Accept", "User-Agent"),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    @property
    def name(self) -> str:
        """The extender's name, which is its URL."""
        return self.config.url_prefix

    def is_interested(self, pod: Pod) -> bool:
        """Whether the extender manages everything, or one of the pod's resources."""
        if not self._managed:
            return True
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return any(
            not self._managed.isdisjoint((*c.resources.requests, *c.resources.limits))
            for c in containers
        )

    async def call(self, verb: str, body: bytes) -> Any:
        """POST once and return the answer's JSON.

        Raises:
            ExtenderError: The call failed in any way.
        """
        url = f"{self.config.url_prefix.rstrip('/')}/{verb}"
        answer = await self._post(verb, url, body)
        try:
            return decode_answer(answer)
        except AnswerError as error:
            raise ExtenderError(str(error)) from error

    async def _post(self, verb: str, url: str, body: bytes) -> bytes:
        if self._session is None:
            raise RuntimeError("an extender is called inside `async with` only")
        answered = False
        options: Any = {"data": body, "headers": _headers(body), **self._server_name()}
        try:
            async with self._session.post(url, **options) as response:
                answered = True
                if response.status != 200:
                    raise ExtenderError(
                        f"failed {verb} with extender at URL {url}, code {response.status}"
                    )
                return await response.read()
        except TimeoutError as error:
            raise ExtenderError(_timeout_message(url, answered)) from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise ExtenderError(f'Post "{url}": {_network_message(error)}') from error

    def _server_name(self) -> dict[str, str]:
        tls = self.config.tls_config
        return {"server_hostname": tls.server_name} if tls and tls.server_name else {}


def _headers(body: bytes) -> dict[str, str]:
    return {
        "User-Agent": "Go-http-client/1.1",
        "Content-Length": str(len(body)),
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip",
    }


def _timeout_message(url: str, answered: bool) -> str:
    if answered:
        return (
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        )
    return (
        f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


def _network_message(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorError(host=host, port=port, os_error=ConnectionRefusedError()):
            return f"dial tcp {host}:{port}: connect: connection refused"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case ConnectionResetError() | aiohttp.ClientOSError(errno=104):
            return "read: connection reset by peer"
    return str(error) or type(error).__name__
