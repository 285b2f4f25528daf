"""Keeps in step with a collection of the API server: list, then watch, and again after a break."""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from moorage.backoff import Backoff
from sandbox.scheduler.cluster.api import Api, ApiError

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
