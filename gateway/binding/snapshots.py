"""Sends binders the state of the cluster as long as an enabled bind plugin reads it."""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress

from gateway.replicas.set import ReplicaSet
from moorage_host.rpc.stream import StreamLostError

ANY_GENERATION = 1
"""What binds ask for while no binder has the state: any that it gets."""


class BinderSnapshots:
    """Sends binders the state while an enabled bind plugin reads it."""

    def __init__(self, make_pool: Callable[[], ReplicaSet]) -> None:
        """Send the state through the pool that *make_pool* makes each time."""
        self._make_pool = make_pool
        self._pool: ReplicaSet | None = None
        self._needed: Hashable = None
        self._changed = asyncio.Event()

    def need(self, what: Hashable) -> None:
        """Take over what is needed from here on: None for nothing, else the kinds of objects."""
        if what != self._needed:
            self._needed = what
            self._changed.set()

    async def run(self) -> None:
        """Send the state while it is needed, until cancelled."""
        while True:
            self._changed.clear()
            if self._needed is None:
                await self._changed.wait()
                continue
            async with asyncio.TaskGroup() as group:
                self._pool = self._make_pool()
                sending = group.create_task(self._pool.run())
                try:
                    await self._changed.wait()
                finally:
                    self._pool = None
                    sending.cancel()

    def generation(self) -> int:
        """Send what has changed, and return which generation binds have to wait for; 0 for none."""
        if self._needed is None:
            return 0
        generations = []
        for member in self._pool.all if self._pool else ():
            with suppress(StreamLostError):  # the pool finds out
                member.session.flush()
                generations.append(member.session.state_generation)
        return min(generations, default=ANY_GENERATION)
