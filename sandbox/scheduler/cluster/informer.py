"""A collection of the API server as the scheduler follows it."""

import asyncio
from collections.abc import Callable
from typing import Any

from sandbox.client import SYNCED, Api

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
