"""Wakes every waiter at once, without a queue per waiter; `store` sends, `watch` waits."""

import asyncio


class Signal:
    """Something happened; each waiter then looks at the state for itself."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def send(self) -> None:
        """Wake all who wait now."""
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self, timeout_seconds: float) -> None:
        """Return at the next `send`, or when the time is over."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        # asyncio.wait leaves the shared future alone when one waiter is cancelled.
        await asyncio.wait([self._next], timeout=max(timeout_seconds, 0.0))
