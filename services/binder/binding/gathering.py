"""Binds that wait for each other: those of one plugin with one key. Used by `permit`."""

import asyncio
import math
import time
from dataclasses import dataclass, field

from moorage import Binding


@dataclass(slots=True, eq=False)
class Member:
    """A bind in a gathering.

    Attributes:
        binding: The bind.
        came: Since when, on the monotonic clock.
        woken: It is to be asked, or to end.
        answered: Resolved when it has been asked; of those that wait for its answer.
        settled: Nothing more is to be asked about it.
    """

    binding: Binding
    came: float = field(default_factory=time.monotonic)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    answered: list[asyncio.Future[None]] = field(default_factory=list)
    settled: bool = False

    def wake(self) -> asyncio.Future[None]:
        """Have it asked again; the future is done when it was, or is settled."""
        answer = asyncio.get_running_loop().create_future()
        if self.settled:
            answer.set_result(None)
        else:
            self.answered.append(answer)
            self.woken.set()
        return answer

    def take_answered(self) -> list[asyncio.Future[None]]:
        """Begin to ask it; return who waits for the answer."""
        self.woken.clear()
        waiting, self.answered = self.answered, []
        return waiting


class Gathering:
    """Binds of one plugin with one key.

    Args:
        ask_interval: How many seconds those that wait are not asked again after another one came
            that waits too. Of a gang of hundreds that comes within a second, not every pod has to
            be asked for every other.

    Attributes:
        members: By uid, those that have not gone on, in order of arrival.
        left: When others left, by uid, while one of the members was there; the latest are last.
    """

    def __init__(self, ask_interval: float) -> None:
        self._ask_interval = ask_interval
        self.members: dict[str, Member] = {}
        self.left: dict[str, float] = {}
        self.timer: asyncio.TimerHandle | None = None

    @property
    def arrived(self) -> tuple[Binding, ...]:
        """The binds that have not gone on, in order of arrival."""
        return tuple(member.binding for member in self.members.values())

    def met(self, member: Member) -> int:
        """Return how many others were there at any time since a member came."""
        left = sum(at >= member.came and uid not in self.members for uid, at in self.left.items())
        return len(self.members) - 1 + left

    def leave(self, member: Member) -> None:
        """Remove a member; those that stay still count it."""
        uid = member.binding.uid
        if self.members.get(uid) is not member:
            return
        del self.members[uid]
        self.left.pop(uid, None)
        self.left[uid] = time.monotonic()
        earliest = min((each.came for each in self.members.values()), default=math.inf)
        while (oldest := next(iter(self.left), "")) and self.left[oldest] < earliest:
            del self.left[oldest]

    async def ask_others(self, member: Member) -> None:
        """Have all others asked again at once; wait until they were."""
        others = [each.wake() for each in self.members.values() if each is not member]
        if others:
            await asyncio.wait(others)

    def ask_others_soon(self) -> None:
        """Have all asked again that wait."""
        if self.timer is None and len(self.members) > 1:
            loop = asyncio.get_running_loop()
            self.timer = loop.call_later(self._ask_interval, self._ask_all)

    def _ask_all(self) -> None:
        self.timer = None
        for member in self.members.values():
            member.woken.set()
