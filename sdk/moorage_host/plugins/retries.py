"""Plugins that ask for another attempt on the pods that they rejected, and who is to know it."""

import asyncio
from collections.abc import AsyncIterator


class RetryRequests:
    """Passes on what plugins ask for, to all who follow at that time."""

    def __init__(self) -> None:
        self._followers: set[_Follower] = set()

    def ask(self, plugin: str, reason: str) -> None:
        """Note that a plugin asks for it; may be called in any thread."""
        for follower in tuple(self._followers):
            follower.loop.call_soon_threadsafe(follower.put, plugin, reason)

    async def follow(self) -> AsyncIterator[tuple[str, str]]:
        """Yield plugins with their reasons from here on; several requests of one may be one."""
        follower = _Follower()
        self._followers.add(follower)
        try:
            while not follower.has_ended:
                await follower.changed.wait()
                for plugin, reason in follower.take().items():
                    yield plugin, reason
        finally:
            self._followers.discard(follower)

    def end(self) -> None:
        """End all that follow."""
        for follower in self._followers:
            follower.has_ended = True
            follower.changed.set()


class _Follower:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.has_ended = False
        self._asked: dict[str, str] = {}

    def put(self, plugin: str, reason: str) -> None:
        self._asked[plugin] = reason
        self.changed.set()

    def take(self) -> dict[str, str]:
        self.changed.clear()
        asked, self._asked = self._asked, {}
        return asked
