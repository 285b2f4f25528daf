"""Permit: binds that wait for others, such as the pods of a gang, before anything is written.

Called by `cycle`. Binds of one plugin with one key form a gathering: whoever comes is asked, then
those that wait are asked again. A bind that is allowed goes on once they have answered, so that all
of a gang go on together.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from moorage import Allow, Binding, Wait
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_to_permit, permit_key_of
from moorage.plugin.bind.answers import Permission
from services.binder.binding.attempt import Attempt
from services.binder.binding.calls import PluginCalls, with_point
from services.binder.binding.gathering import Gathering, Member
from services.binder.binding.outcomes import BindError, Reason

WaitEnd = Literal["allowed", "refused", "failed", "timeout", "ended", "fenced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitLimits:
    """How many binds may wait, and how long."""

    waiting: int = 1024
    """Binds that may wait for others; more are refused."""
    reserve: float = 0.5
    """Seconds that are left for PreBind plugins and the write when the wait ends."""
    ask_interval: float = 0.05
    """Seconds between two questions to binds that wait, when others come that wait too."""


class PermitObserver(Protocol):
    """Counts binds that wait for others."""

    def waiting(self, change: int, /) -> None:
        """Note that so many more binds wait."""

    def waited(self, end: WaitEnd, seconds: float, /) -> None:
        """Note how long a bind waited, and how that ended."""


class Permits:
    """Has Permit plugins allow binds, and keeps those that wait."""

    def __init__(self, calls: PluginCalls, limits: PermitLimits, observer: PermitObserver) -> None:
        self._calls = calls
        self._limits = limits
        self._observer = observer
        self._gatherings: dict[tuple[str, str], Gathering] = {}
        self._waiting: set[Member] = set()
        self._is_ending = False

    @property
    def waiting(self) -> int:
        """How many binds wait for others."""
        return len(self._waiting)

    async def pass_all(self, profile: Profile, binding: Binding, attempt: Attempt) -> None:
        """Return once all Permit plugins of a profile allow the bind.

        Raises:
            BindError: One refuses or fails, or time runs out before it allows the bind.
        """
        for enabled in with_point(profile, "Permit"):
            key = await self._key(enabled, binding, attempt)
            with self._gathered(enabled, key, binding) as (gathering, member):
                await self._pass(_Visit(enabled, key, attempt, gathering, member))

    def end_waiting(self) -> None:
        """End all waits: the caller repeats the binds elsewhere."""
        self._is_ending = True
        for member in self._waiting:
            member.woken.set()

    async def _pass(self, visit: "_Visit") -> None:
        permission = await self._ask(visit)
        if isinstance(permission, Wait):
            visit.gathering.ask_others_soon()
            await self._wait(visit, permission)
        # It stays until the others have been asked, so that all of them count it.
        visit.member.settled = True
        await visit.gathering.ask_others(visit.member)

    async def _wait(self, visit: "_Visit", permission: Permission) -> None:
        """Ask again whenever woken, until the bind is allowed."""
        with self._counted(visit) as end:
            while isinstance(permission, Wait):
                await self._until_woken(visit, permission, end)
                permission = await self._ask(visit)
            end.how = "allowed"

    async def _until_woken(self, visit: "_Visit", wait: Wait, end: "_End") -> None:
        """Wait for others as long as the bind may, which a second call for it may extend."""
        binding = visit.member.binding
        while not self._is_ending:
            latest = visit.attempt.deadline_of_plugins - self._limits.reserve
            ends = visit.member.came + wait.seconds
            left = min(ends, latest) - time.monotonic()
            if left <= 0 and not visit.member.woken.is_set():
                end.how = "timeout"
                raise visit.timed_out(wait, is_cut=latest < ends)
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await visit.member.woken.wait()
                return
        end.how = "ended"
        raise BindError(
            Reason.UNAVAILABLE,
            f"{binding} was not bound: it waited for {wait.awaited}, and the binder "
            "ends; try again",
        )

    async def _ask(self, visit: "_Visit") -> Permission:
        answered = visit.member.take_answered()
        binding = replace(visit.member.binding, arrived=visit.gathering.arrived)
        try:
            return await self._calls.before(
                visit.enabled,
                binding,
                "Permit",
                lambda supervisor: ask_to_permit(visit.enabled, binding, visit.key, supervisor),
                visit.attempt,
                otherwise=Allow(),
            )
        finally:
            for each in answered:
                each.set_result(None)

    async def _key(self, enabled: EnabledPlugin, binding: Binding, attempt: Attempt) -> str:
        async def ask(supervisor: Supervisor) -> str:
            return permit_key_of(enabled, binding, supervisor)

        return await self._calls.before(
            enabled, binding, "Permit", ask, attempt, otherwise="", counts=False
        )

    @contextmanager
    def _gathered(
        self, enabled: EnabledPlugin, key: str, binding: Binding
    ) -> Iterator[tuple[Gathering, Member]]:
        """Keep a bind among those with its key; without one it is alone."""
        name, member = (enabled.name, key), Member(binding)
        gathering = (self._gatherings.get(name) if key else None) or Gathering(
            self._limits.ask_interval
        )
        if key:
            self._gatherings[name] = gathering
        gathering.members[binding.uid] = member
        try:
            yield gathering, member
        finally:
            member.settled = True
            for each in member.take_answered():
                each.set_result(None)
            gathering.leave(member)
            if not gathering.members and self._gatherings.get(name) is gathering:
                del self._gatherings[name]

    @contextmanager
    def _counted(self, visit: "_Visit") -> Iterator["_End"]:
        """Count a bind that waits, if it may."""
        if self.waiting >= self._limits.waiting:
            raise BindError(
                Reason.OVERLOADED,
                f"{visit.member.binding} was not bound: {self.waiting} binds wait for others "
                "already; try again later, or raise --max-permit-waiting",
            )
        end = _End()
        self._waiting.add(visit.member)
        self._observer.waiting(1)
        try:
            yield end
        except BindError as error:
            if error.reason is Reason.REFUSED:
                end.how = "refused"
            raise
        except asyncio.CancelledError:
            end.how = "fenced"
            raise
        finally:
            self._waiting.discard(visit.member)
            self._observer.waiting(-1)
            self._observer.waited(end.how, time.monotonic() - visit.member.came)


@dataclass(slots=True)
class _End:
    how: WaitEnd = "failed"


@dataclass(frozen=True, slots=True)
class _Visit:
    """A bind at one Permit plugin, and the key that it has there."""

    enabled: EnabledPlugin
    key: str
    attempt: Attempt
    gathering: Gathering
    member: Member

    def timed_out(self, wait: Wait, *, is_cut: bool) -> BindError:
        """Return the outcome of a bind that waited in vain, maybe for less than it should."""
        seconds, others = time.monotonic() - self.member.came, self.gathering.met(self.member)
        cut = f" (Wait({wait.seconds:g}) was cut, see httpTimeout)" if is_cut else ""
        return BindError(
            Reason.PERMIT_TIMEOUT,
            f"{self.member.binding} was not bound: plugin {self.enabled.name}: waited "
            f"{seconds:.1f} s{cut} for {wait.awaited}; {others or 'no'} "
            f"other{'s' * (others != 1)} had come",
        )
