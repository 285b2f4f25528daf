"""The nodes at the API server: reads them all, writes annotations of one, patiently."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog

from moorage.backoff import Backoff
from moorage.models import NodeManifest, decode_node
from moorage_host.kube import KubeClient, KubeError, KubeStatusError, Response
from services.annotator.metrics import RETRIES

FIELD_MANAGER: Final = "moorage-annotator"
"""The field manager, as `kubectl get node --show-managed-fields` shows it."""

PAGE_SIZE: Final = 500
"""Nodes in one answer."""

GONE, EXPIRED = 404, 410

_PATH: Final = "/api/v1/nodes"
_RETRIED: Final = (409, 429)
_log = structlog.get_logger()


class _ListMeta(msgspec.Struct, frozen=True):
    next_page: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


class Nodes:
    """The nodes of one cluster.

    Every method raises KubeStatusError if the API server refuses, KubeUnreachableError or
    TimeoutError if it does not answer, each after as many retries as help; KubeError if it answers
    something else.

    Args:
        client: The connection; the caller closes it.
        request_timeout: Time for one request, in seconds.
        retries: How often a request is sent again.
        longest_wait: The longest wait before that, in seconds.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        request_timeout: float,
        retries: int,
        longest_wait: float = 5.0,
    ) -> None:
        self._client = client
        self._timeout = request_timeout
        self._retries = retries
        self._longest_wait = longest_wait

    async def read(self) -> list[NodeManifest]:
        """Return all nodes; one that cannot be understood is logged and left out."""
        try:
            return await self._read()
        except KubeStatusError as error:
            if error.status != EXPIRED:  # the second page came too late
                raise
        return await self._read()

    async def annotate(self, name: str, annotations: Mapping[str, str | None]) -> bool:
        """Write annotations, remove those that are None; return whether the node still exists."""
        body = msgspec.json.encode({"metadata": {"annotations": annotations}})
        try:
            await self._send(
                "PATCH",
                f"{_PATH}/{name}",
                query={"fieldManager": FIELD_MANAGER},
                body=body,
                content_type="application/merge-patch+json",
            )
        except KubeStatusError as error:
            if error.status != GONE:
                raise
            return False
        return True

    async def _read(self) -> list[NodeManifest]:
        nodes: list[NodeManifest] = []
        query = {"limit": str(PAGE_SIZE)}
        while True:
            answer = await self._send("GET", _PATH, query=query)
            page = _page(answer)
            nodes += [node for raw in page.items or () if (node := _decoded(raw))]
            if not page.metadata.next_page:
                return nodes
            query["continue"] = page.metadata.next_page

    async def _send(self, method: str, path: str, **request: Any) -> Response:
        backoff = Backoff(min(0.2, self._longest_wait), self._longest_wait)
        left = self._retries
        while True:
            try:
                answer = await self._client.request(method, path, timeout=self._timeout, **request)
                return answer.check()
            except (KubeError, TimeoutError) as error:
                if not left or not _may_pass(error):
                    raise
                RETRIES.labels(_cause(error)).inc()
                wait = backoff.next(getattr(error, "retry_after", None))
            left -= 1
            await asyncio.sleep(wait)


def _page(answer: Response) -> _Page:
    try:
        return msgspec.json.decode(answer.body, type=_Page)
    except msgspec.DecodeError as error:  # of something that stands before the API server
        raise KubeError(f"{answer.what}: the answer is no list of nodes: {error}") from error


def _decoded(raw: msgspec.Raw) -> NodeManifest | None:
    try:
        return decode_node(bytes(raw))
    except msgspec.DecodeError as error:
        _log.warning("A node cannot be read and is left out.", error=str(error))
        return None


def _may_pass(error: KubeError | TimeoutError) -> bool:
    """Whether trying again may help."""
    if isinstance(error, KubeStatusError):
        return error.status in _RETRIED or error.status >= 500
    return True


def _cause(error: KubeError | TimeoutError) -> str:
    if isinstance(error, KubeStatusError):
        return str(error.status)
    return "timeout" if isinstance(error, TimeoutError) else "unreachable"
