"""Sends decisions to those who follow them, as server-sent events."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from gateway.cycle import Cycle
from gateway.cycle.decision import Decision, DecisionItem
from moorage_host.http.callers import UncheckedError

MayRead = Callable[[str], Awaitable[bool]]
"""Returns whether the caller may read the pods of a namespace."""

LOOK_SECONDS = 1.0
"""How often it is looked whether a client has left: until something is sent, nothing else shows."""

HEARTBEAT_LOOKS = 15
"""Looks after which a comment is sent if nothing else is, so that proxies keep the connection."""

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class _Follower:
    """Those decisions that one client has not been sent; the oldest are left out if too many."""

    def __init__(self, limit: int) -> None:
        self.waiting: deque[Decision] = deque(maxlen=limit)
        self.missed = 0
        self.news = asyncio.Event()

    def note(self, decision: Decision) -> None:
        if len(self.waiting) == self.waiting.maxlen:
            self.missed += 1
        self.waiting.append(decision)
        self.news.set()

    def take(self) -> tuple[list[Decision], int]:
        decisions, missed = list(self.waiting), self.missed
        self.waiting.clear()
        self.missed = 0
        self.news.clear()
        return decisions, missed


class DecisionStream:
    """The clients that follow decisions; an observer of cycles."""

    def __init__(self, *, clients: int, waiting: int) -> None:
        """Limits the clients, and the decisions that may wait for each."""
        self._clients = clients
        self._waiting = waiting
        self._followers: set[_Follower] = set()

    def __len__(self) -> int:
        return len(self._followers)

    def on_cycle_end(self, cycle: Cycle) -> None:
        """Send the decision to all clients."""
        for follower in self._followers:
            follower.note(cycle.decision)

    def bound(self, decision: Decision) -> None:
        """Send the decision again."""
        for follower in self._followers:
            follower.note(decision)

    async def serve(
        self,
        request: web.Request,
        item: Callable[[Decision], DecisionItem],
        may_read: MayRead,
    ) -> web.StreamResponse:
        """Send decisions, as *item* shows them, until the client leaves."""
        if len(self._followers) >= self._clients:
            text = f"{self._clients} clients follow decisions already: try again later"
            return web.json_response({"error": text}, status=503, headers={"Retry-After": "5"})
        follower = _Follower(self._waiting)
        self._followers.add(follower)
        try:
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            await response.write(b": decisions\n\n")
            while True:
                await _until_news(follower, request)
                if events := await _events(follower, item, may_read):
                    await response.write(events)
        except (ConnectionError, UncheckedError):
            return response
        finally:
            self._followers.discard(follower)


async def _until_news(follower: _Follower, request: web.Request) -> None:
    """Wait for decisions, at most until a heartbeat is due; raises ConnectionError."""
    for _ in range(HEARTBEAT_LOOKS):
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await follower.news.wait()
        except TimeoutError:
            if request.transport is None:
                raise ConnectionResetError("the client has left") from None
        else:
            return


async def _events(
    follower: _Follower, item: Callable[[Decision], DecisionItem], may_read: MayRead
) -> bytes:
    """Return the events of the decisions that wait; a comment if none do.

    Nothing if the client may read none of them: not even that there are any.
    """
    decisions, missed = follower.take()
    if not decisions:
        return b": none\n\n"
    events = [b'event: missed\ndata: {"decisions":%d}\n\n' % missed] if missed else []
    events += [_event(item(each)) for each in decisions if await may_read(each.namespace)]
    return b"".join(events)


def _event(item: DecisionItem) -> bytes:
    return b"event: decision\nid: %s\ndata: %s\n\n" % (item.id.encode(), msgspec.json.encode(item))
