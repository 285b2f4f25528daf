"""The replicas that take part, whose turn it is, and what each has not answered yet."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gateway.replicas.feed import StateFeed
from gateway.replicas.session import Session
from moorage_host.rpc.stream import StreamLostError

MANY_CHANGES = 50
"""Changes that are not left for the next cycle to bring along."""

FEW_CHANGES_TICKS = 5
"""Times `delta_interval` after which fewer changes are sent as well."""

LONGEST_SLEEP = 1.0
"""Seconds after which replicas that lack changes are looked for even if nothing has changed: one
may have joined, or could not take any more before."""


@dataclass(slots=True, eq=False)
class Member:
    """A replica that takes part.

    Attributes:
        place: Its address.
        session: The session with it.
        unanswered: Work that it was sent and has not answered.
    """

    place: str
    session: Session
    unanswered: set[asyncio.Future[Any]] = field(default_factory=set)

    async def answered(self) -> None:
        """Wait until it has answered what it was sent, or failed to."""
        if self.unanswered:
            await asyncio.wait(self.unanswered)

    def end_once_answered(self) -> None:
        """Have its session end, which another one has replaced, once nothing is unanswered."""
        if not self.unanswered:
            self.session.break_off("another session has taken over")
        for each in self.unanswered:
            each.add_done_callback(lambda _: self.end_once_answered())


class Members:
    """Replicas in turn, those without unanswered work first."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._turns = itertools.count()

    def __len__(self) -> int:
        return len(self._members)

    @property
    def all(self) -> Collection[Member]:
        """All of them, to iterate over even if some come or go meanwhile."""
        return list(self._members.values())

    @property
    def alike(self) -> tuple[str, int]:
        """The version of plugins that most replicas without unanswered work have; how many do."""
        idle = Counter(m.session.version for m in self._members.values() if not m.unanswered)
        return max(idle.items(), key=lambda each: (each[1], each[0]), default=("", 0))

    def add(self, place: str, session: Session) -> None:
        """Let a replica take part."""
        self._members[place] = Member(place, session)

    def at(self, place: str) -> Member | None:
        """Return the replica with this address."""
        return self._members.get(place)

    def remove(self, place: str, session: Session) -> bool:
        """Remove a replica; return whether it took part with this session."""
        member = self._members.get(place)
        if member is None or member.session is not session:
            return False
        del self._members[place]
        return True

    def next(self, version: str = "") -> Member | None:
        """Return whose turn it is, of those with a version of plugins."""
        members = list(self._with(version))
        if not members:
            return None
        turn = next(self._turns) % len(members)
        return min(members[turn:] + members[:turn], key=lambda member: len(member.unanswered))

    def has_others(self, asked: Collection[Member], version: str = "") -> bool:
        """Whether any replica with a version of plugins is none of *asked*."""
        return any(member not in asked for member in self._with(version))

    def spare(self, others: Collection[Member], version: str = "") -> Member | None:
        """Return a replica with a version, without unanswered work, that is none of *others*."""
        idle = (m for m in self._with(version) if not m.unanswered and m not in others)
        return next(idle, None)

    def _with(self, version: str) -> Iterator[Member]:
        every = self._members.values()
        return (m for m in every if not version or m.session.version == version)

    def lack_changes(self) -> bool:
        """Whether a replica that keeps up has not been sent the newest state."""
        return any(member.session.lacks_changes() for member in self.all)

    def send_changes(self, least: int) -> None:
        """Send each replica the changes since its last message, if there are at least so many."""
        for member in self.all:
            with suppress(StreamLostError):  # who keeps the session finds out
                member.session.send_changes(least)

    async def send_deltas(self, feed: StateFeed, interval: float) -> None:
        """Send many changes at once, so that cycles find them there already; a few take longer.

        A cycle brings a few along at no cost, while a message of their own makes all sides work.
        Nothing happens while nothing changes: a timer would wake an idle gateway up all the time.
        """
        ticks = [MANY_CHANGES] * (FEW_CHANGES_TICKS - 1) + [1]
        while True:
            await feed.wait_for(self.lack_changes, LONGEST_SLEEP)
            for least in ticks:
                await asyncio.sleep(interval)
                self.send_changes(least)
