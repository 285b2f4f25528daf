"""Permit: binds that wait for others, such as the pods of a gang, before anything is written.

Called by `cycle`. Binds of one plugin with one key form a gathering: whoever comes is asked, then
those that wait are asked again. A bind that is allowed goes on once they have answered, so that all
of a gang go on together.
"""

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from moorage import Allow, Binding, Wait
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_to_permit, permit_key_of
from moorage.plugin.bind import Permission
from moorage.plugin.points import extension_points
from services.binder.binding.attempt import Attempt
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, Point, Reason, WaitEnd
from services.binder.metrics import BindMetrics


@dataclass(slots=True, eq=False)
class _Member:
    """A bind at one Permit plugin, in the gathering of its key.

    Attributes:
        came: Since when, on the monotonic clock.
        woken: It is to be asked, or to end.
        answered: Resolved when it has been asked; of those that wait for its answer.
        settled: Nothing more is to be asked about it.
        end: How its wait ends.
    """

    binding: Binding
    enabled: EnabledPlugin
    key: str
    attempt: Attempt
    gathering: "_Gathering"
    came: float = field(default_factory=time.monotonic)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    answered: list[asyncio.Future[None]] = field(default_factory=list)
    settled: bool = False
    end: WaitEnd = "failed"

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


class _Gathering:
    """Binds of one plugin with one key.

    Attributes:
        members: By uid, those that have not gone on, in order of arrival.
        left: When others left, by uid, while one of the members was there; the latest are last.
    """

    def __init__(self, ask_interval: float) -> None:
        """Ask those that wait at most once in *ask_interval* seconds when others come that wait."""
        self._ask_interval = ask_interval
        self.members: dict[str, _Member] = {}
        self.left: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def met(self, member: _Member) -> int:
        """Return how many others were there at any time since a member came."""
        left = sum(at >= member.came and uid not in self.members for uid, at in self.left.items())
        return len(self.members) - 1 + left

    def leave(self, member: _Member) -> None:
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

    async def ask_others(self, member: _Member) -> None:
        """Have all others asked again at once; wait until they were."""
        others = [each.wake() for each in self.members.values() if each is not member]
        if others:
            await asyncio.wait(others)

    def ask_others_soon(self) -> None:
        """Have all asked again that wait."""
        if self._timer is None and len(self.members) > 1:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._ask_interval, self._ask_all)

    def _ask_all(self) -> None:
        self._timer = None
        for member in self.members.values():
            member.woken.set()


class Permits:
    """Has Permit plugins allow binds, and keeps those that wait.

    Attributes:
        waiting: The binds that wait for others.
    """

    def __init__(self, limits: BindLimits, metrics: BindMetrics) -> None:
        self.waiting: set[_Member] = set()
        self._limits = limits
        self._metrics = metrics
        self._gatherings: dict[tuple[str, str], _Gathering] = {}
        self._is_ending = False

    async def pass_all(self, profile: Profile, binding: Binding, attempt: Attempt) -> None:
        """Return once all Permit plugins of a profile allow the bind.

        Raises:
            BindError: One refuses or fails, or time runs out before it allows the bind.
        """
        for enabled in with_point(profile, "Permit"):
            key = await _key(enabled, binding, attempt)
            with self._gathered(enabled, key, binding, attempt) as member:
                await self._pass(member)

    def end_waiting(self) -> None:
        """End all waits: the caller repeats the binds elsewhere."""
        self._is_ending = True
        for member in self.waiting:
            member.woken.set()

    async def _pass(self, member: _Member) -> None:
        permission = await _ask(member)
        if isinstance(permission, Wait):
            member.gathering.ask_others_soon()
            with self._counted(member):
                while isinstance(permission, Wait):
                    if report := member.attempt.report_wait:
                        report(member.enabled.name, permission.awaited)
                    await self._until_woken(member, permission)
                    permission = await _ask(member)
                member.end = "allowed"
        # It stays until the others have been asked, so that all of them count it.
        member.settled = True
        await member.gathering.ask_others(member)

    async def _until_woken(self, member: _Member, wait: Wait) -> None:
        """Wait for others as long as the bind may, which a second call for it may extend."""
        while not self._is_ending:
            latest = member.attempt.deadline_of_plugins - self._limits.permit_reserve
            ends = member.came + wait.seconds
            left = min(ends, latest) - time.monotonic()
            if left <= 0 and not member.woken.is_set():
                member.end = "timeout"
                raise _timed_out(member, wait, is_cut=latest < ends)
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await member.woken.wait()
                return
        member.end = "ended"
        raise BindError(
            Reason.UNAVAILABLE,
            f"{member.binding} was not bound: it waited for {wait.awaited}, and the binder "
            "ends; try again",
        )

    @contextmanager
    def _gathered(
        self, enabled: EnabledPlugin, key: str, binding: Binding, attempt: Attempt
    ) -> Iterator[_Member]:
        """Keep a bind among those with its key; without one it is alone."""
        name = (enabled.name, key)
        gathering = self._gatherings.get(name) if key else None
        if gathering is None:
            gathering = _Gathering(self._limits.permit_ask_interval)
        if key:
            self._gatherings[name] = gathering
        member = _Member(binding, enabled, key, attempt, gathering)
        gathering.members[binding.uid] = member
        try:
            yield member
        finally:
            member.settled = True
            for each in member.take_answered():
                each.set_result(None)
            gathering.leave(member)
            if not gathering.members and self._gatherings.get(name) is gathering:
                del self._gatherings[name]

    @contextmanager
    def _counted(self, member: _Member) -> Iterator[None]:
        """Count a bind that waits, if it may."""
        if len(self.waiting) >= self._limits.max_permit_waiting:
            raise BindError(
                Reason.OVERLOADED,
                f"{member.binding} was not bound: {len(self.waiting)} binds wait for others "
                "already; try again later, or raise --max-permit-waiting",
            )
        self.waiting.add(member)
        self._metrics.waiting(1)
        try:
            yield
        except BindError as error:
            if error.reason is Reason.REFUSED:
                member.end = "refused"
            raise
        except asyncio.CancelledError:
            member.end = "fenced"
            raise
        finally:
            self.waiting.discard(member)
            self._metrics.waiting(-1)
            self._metrics.waited(member.end, time.monotonic() - member.came)


async def _ask(member: _Member) -> Permission:
    answered = member.take_answered()
    arrived = tuple(each.binding for each in member.gathering.members.values())
    binding = replace(member.binding, arrived=arrived)
    try:
        return await member.attempt.ask(
            member.enabled,
            "Permit",
            lambda supervisor: ask_to_permit(member.enabled, binding, member.key, supervisor),
            otherwise=Allow(),
        )
    finally:
        for each in answered:
            each.set_result(None)


def with_point(profile: Profile, point: Point) -> list[EnabledPlugin]:
    """Return the plugins of a profile that implement a point, in order."""
    return [e for e in profile.plugins if point in extension_points(type(e.plugin))]


async def _key(enabled: EnabledPlugin, binding: Binding, attempt: Attempt) -> str:
    async def ask(supervisor: Supervisor) -> str:
        return permit_key_of(enabled, binding, supervisor)

    return await attempt.ask(enabled, "Permit", ask, otherwise="", counts=False)


def _timed_out(member: _Member, wait: Wait, *, is_cut: bool) -> BindError:
    """Return the outcome of a bind that waited in vain, maybe for less than it should."""
    seconds, others = time.monotonic() - member.came, member.gathering.met(member)
    cut = f" (Wait({wait.seconds:g}) was cut, see httpTimeout)" if is_cut else ""
    return BindError(
        Reason.PERMIT_TIMEOUT,
        f"{member.binding} was not bound: plugin {member.enabled.name}: waited "
        f"{seconds:.1f} s{cut} for {wait.awaited}; {others or 'no'} "
        f"other{'s' * (others != 1)} had come",
    )
