"""Permit: binds that wait for others, such as the pods of a gang, before anything is written.

Called by `cycle`. Binds of one plugin with one key form a gathering: whoever comes is asked, then
those that wait are asked again. A bind that is allowed goes on once they have answered, so that all
of a gang go on together.

They are bound together or not at all: each is prepared, and none is written before all are ready.
Where one fails until then, the plugin is asked about the others once more, without the one that has
failed. So it decides whether fewer are enough. What remains is the time between the first write and
the last, in which a write may still fail.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

from moorage import Allow, Binding, Wait
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_to_permit, permit_key_of
from moorage.plugin.hooks import extension_points
from moorage.plugin.values import Permission
from services.binder.binding.attempt import BindAttempt
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, BindReason, Point, WaitEnd
from services.binder.metrics import BindMetrics

LOOK_INTERVAL = 0.5
"""Seconds after which a plugin that reads the snapshot is asked again though nobody came."""


@dataclass(slots=True, eq=False)
class _Member:
    """A bind at one Permit plugin, in the gathering of its key.

    Attributes:
        came: Since when, on the monotonic clock.
        woken: It is to be asked, or to end.
        answered: Resolved when it has been asked; of those that wait for its answer.
        settled: It is allowed, or has failed.
        counted: Those that were there when it was last asked, some of which may have failed since.
        end: How its wait ends.
        ready: Set when it is prepared, or has failed.
        failed: Why it is not bound, if it is known not to be.
    """

    binding: Binding
    enabled: EnabledPlugin
    key: str
    attempt: BindAttempt
    gathering: "_Gathering"
    came: float = field(default_factory=time.monotonic)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    answered: list[asyncio.Future[None]] = field(default_factory=list)
    settled: bool = False
    counted: "Sequence[_Member]" = ()
    end: WaitEnd = "failed"
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failed: str = ""

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

    def allowed(self, member: _Member) -> list[_Member]:
        """Return the others that may go on with a member."""
        there = dict.fromkeys((*member.counted, *self.members.values()))
        return [each for each in there if each.settled and each is not member]

    async def ask_others(self, member: _Member) -> None:
        """Have all others asked again at once; wait until they were."""
        others = [each.wake() for each in self.members.values() if each is not member]
        if others:
            await asyncio.wait(others)

    def ask_others_soon(self) -> None:
        """Have all asked again that wait."""
        if self._timer is None and len(self.members) > 1:
            loop = asyncio.get_running_loop()
            wait = self._ask_interval * (1 + len(self.members) / 32)  # each round asks all of them
            self._timer = loop.call_later(wait, self._ask_all)

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

    async def pass_all(
        self,
        profile: Profile,
        binding: Binding,
        attempt: BindAttempt,
        prepare: Callable[[bool], Awaitable[None]],
    ) -> bool:
        """Return once all Permit plugins allow a bind, and all binds allowed with it are prepared.

        Args:
            profile: Has the plugins.
            binding: The decision.
            attempt: Binds it afterwards.
            prepare: Does what comes before the write; gets whether others go on with the bind.

        Returns:
            Whether others go on with the bind.

        Raises:
            BindError: A plugin refuses or fails, time runs out before it allows the bind, or a
                required member fails.
        """
        members: list[_Member] = []
        with ExitStack() as stack:
            for enabled in with_point(profile, "Permit"):
                key = await _key(enabled, binding, attempt)
                member = stack.enter_context(self._gathered(enabled, key, binding, attempt))
                members.append(member)
                await self._pass(member)
            others = [other for member in members for other in member.gathering.allowed(member)]
            await prepare(bool(others))
            for member in members:
                member.ready.set()
            if others:
                await self._agree(attempt, members, others)
        return bool(others)

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

    async def _agree(
        self, attempt: BindAttempt, members: Sequence[_Member], others: Sequence[_Member]
    ) -> None:
        """Wait until the others are ready; if some have failed, ask whether it goes without them.

        Raises:
            BindError: It does not.
        """
        left = attempt.deadline_of_plugins - time.monotonic()
        try:
            async with asyncio.timeout(left):
                for other in others:
                    await other.ready.wait()
        except TimeoutError:
            self._metrics.together("given-up")
            late = next(other for other in others if not other.ready.is_set())
            raise _without(attempt.binding, f"{late.binding} was not ready in time") from None
        failed = next((other.failed for other in others if other.failed), "")
        for member in members if failed else ():
            if not isinstance(await _ask(member, others), Allow):
                self._metrics.together("given-up")
                raise _without(attempt.binding, failed)

    async def _until_woken(self, member: _Member, wait: Wait) -> None:
        """Wait for others as long as the bind may, which a second call for it may extend."""
        while not self._is_ending:
            latest = member.attempt.deadline_of_plugins - self._limits.permit_reserve
            ends = member.came + wait.seconds
            left = min(ends, latest) - time.monotonic()
            if left <= 0 and not member.woken.is_set():
                member.end = "timeout"
                raise _timed_out(member, wait, is_cut=latest < ends)
            if getattr(member.enabled.plugin, "reads_snapshot", False):
                left = min(left, LOOK_INTERVAL)
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await member.woken.wait()
                return
            if time.monotonic() < min(ends, latest):
                return  # the state may have changed
        member.end = "ended"
        raise BindError(
            BindReason.UNAVAILABLE,
            f"{member.binding} was not bound: it waited for {wait.awaited}, and the binder "
            "ends; try again",
        )

    @contextmanager
    def _gathered(
        self, enabled: EnabledPlugin, key: str, binding: Binding, attempt: BindAttempt
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
        except BaseException as error:
            member.failed = str(error) or f"{binding} was given up"
            raise
        finally:
            member.settled = True
            member.ready.set()
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
                BindReason.OVERLOADED,
                f"{member.binding} was not bound: {len(self.waiting)} binds wait for others "
                "already; try again later",
            )
        self.waiting.add(member)
        self._metrics.waiting(1)
        try:
            yield
        except BindError as error:
            if error.reason is BindReason.REFUSED:
                member.end = "refused"
            raise
        except asyncio.CancelledError:
            member.end = "fenced"
            raise
        finally:
            self.waiting.discard(member)
            self._metrics.waiting(-1)
            self._metrics.waited(member.end, time.monotonic() - member.came)


async def _ask(member: _Member, others: Sequence[_Member] = ()) -> Permission:
    """Ask the plugin; of the *others*, those count too that have gone on."""
    answered = member.take_answered()
    member.counted = list(member.gathering.members.values())
    arrived = {each.binding.uid: each.binding for each in member.counted}
    arrived |= {
        each.binding.uid: each.binding
        for each in others
        if each.gathering is member.gathering and not each.failed
    }
    binding = replace(member.binding, arrived=tuple(arrived.values()))
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


async def _key(enabled: EnabledPlugin, binding: Binding, attempt: BindAttempt) -> str:
    async def ask(supervisor: Supervisor) -> str:
        return permit_key_of(enabled, binding, supervisor)

    return await attempt.ask(enabled, "Permit", ask, otherwise="", counts=False)


def _without(binding: Binding, reason: str) -> BindError:
    """Return the outcome of a bind that others have kept from being written."""
    return BindError(BindReason.GROUP, f"{binding} was not bound, as all or none are: {reason}")


def _timed_out(member: _Member, wait: Wait, *, is_cut: bool) -> BindError:
    """Return the outcome of a bind that waited in vain, maybe for less than it should."""
    seconds, others = time.monotonic() - member.came, member.gathering.met(member)
    cut = f" (Wait({wait.seconds:g}) was cut, see httpTimeout)" if is_cut else ""
    return BindError(
        BindReason.PERMIT_TIMEOUT,
        f"{member.binding} was not bound: plugin {member.enabled.name}: waited "
        f"{seconds:.1f} s{cut} for {wait.awaited}; {others or 'no'} "
        f"other{'s' * (others != 1)} had come",
    )
