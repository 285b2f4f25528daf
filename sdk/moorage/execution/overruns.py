"""Who overran a plugin's time budget lately, and for whom the plugin is not called until when.

All pods share the thread that plugins run in, so what one pod costs, the others wait. A pod that
overran fails at once for a while, longer each time, and pods of its namespace have less time. Where
several do, their next attempts together get a small share of the time; past a limit, all pods of
the namespace wait for that share. The plugin is suspended for everybody only if pods of several
namespaces overran with no call in between that went well: then it is the plugin, not a pod.

A plugin that ends the process it runs in is not called for that pod for longer, after the second
time not for its namespace, and for nobody if that happens to pods of several namespaces.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from moorage.models import Pod

Owner = tuple[str, str]
"""Whose call it is: a namespace, and the name of a pod in it."""

FIRST_WAIT: Final = 1.0
"""Seconds for which a pod is refused after its first overrun; they double with each one."""

LONGEST_WAIT: Final = 120.0
"""The longest such time."""

SHARE: Final = 0.01
"""Of the time, what overruns of one namespace may take once `FREE_SECONDS` are used up."""

FREE_SECONDS: Final = 2.0
"""Overruns of a namespace after which its pods that overran have to keep to its share."""

MOST_SECONDS: Final = 10.0
"""Overruns of a namespace after which all of its pods have to."""

LESS: Final = 0.25
"""The part of a plugin's time budget that pods of a namespace have while it owes time."""

NAMESPACES: Final = 3
"""Namespaces whose pods overran at one extension point, and none went well, before suspension."""

SUSPENSION_SECONDS: Final = 30.0
"""How long a suspended plugin is left alone."""

ENDED_SECONDS: Final = 600.0
"""How long a plugin is not called after it ended a process."""

MOST_ENDS: Final = 2
"""Processes that a plugin may end for pods of one namespace; in all, for pods of several."""

MOST_PODS: Final = 1000
"""Pods that are kept; the one whose last overrun is the longest ago is forgotten first."""

MOST_NAMESPACES: Final = 200
"""Namespaces that are kept, in the same way."""

FORGET_SECONDS: Final = 600.0
"""After which an overrun is forgotten."""


def owner_of(pod: Pod) -> Owner:
    """Return whose call one about *pod* is."""
    metadata = pod.metadata
    return metadata.namespace, metadata.name


@dataclass(slots=True)
class _Late:
    """A pod that overran: how often, where, why it is refused, when it did last.

    For how long it is refused, and what the last overrun took, in seconds.
    """

    count: int
    point: str
    why: str
    at: float
    wait: float
    seconds: float = 0.0


@dataclass(slots=True)
class _Debt:
    """What a namespace's overruns have taken beyond its share, in seconds, at some time."""

    seconds: float
    at: float

    def left(self, now: float) -> float:
        return max(0.0, self.seconds - SHARE * (now - self.at))


@dataclass(slots=True)
class _Ended:
    """How often the plugin ended a process for pods of a namespace; how, and when, at last."""

    count: int
    how: str
    at: float


def _times(count: int, how: str) -> str:
    return f"its process {how}, {'once' if count == 1 else f'{count} times'}"


@dataclass(slots=True, kw_only=True)
class Overruns:
    """Overruns of one plugin.

    Attributes:
        clock: A monotonic clock, in seconds.
        pods: Those that overran lately, the latest last.
        ended: The processes that ended, by namespace. While both are empty, nobody is refused.
    """

    clock: Callable[[], float] = time.monotonic
    pods: OrderedDict[int, _Late] = field(default_factory=OrderedDict)
    _debts: OrderedDict[str, _Debt] = field(default_factory=OrderedDict)
    _in_a_row: dict[str, set[str]] = field(default_factory=dict)
    _suspended_at: float = float("-inf")
    _suspended_for: str = ""
    ended: OrderedDict[str, _Ended] = field(default_factory=OrderedDict)
    _thread: _Ended = field(default_factory=lambda: _Ended(0, "", float("-inf")))

    @property
    def problem(self) -> str:
        """Return for whom the plugin is not called although it is no pod's fault, and why."""
        now = self.clock()
        if now - self._suspended_at < SUSPENSION_SECONDS:
            return self._suspended_for
        ended = [each for each in self.ended.values() if now - each.at < ENDED_SECONDS]
        if not ended:
            return self._thread.how if now - self._thread.at < ENDED_SECONDS else ""
        count = sum(each.count for each in ended)
        whom = "for some pods"
        if count >= MOST_ENDS:
            whom = "for any pod" if len(ended) > 1 else "for pods of one namespace"
        return f"not called {whom} for {ENDED_SECONDS:g} s: {_times(count, ended[-1].how)}"

    def apart(self) -> "Overruns":
        """Return overruns that are counted apart, of the same plugin in the same process."""
        return Overruns(clock=self.clock, ended=self.ended)

    def refusal(self, owner: Owner) -> str:
        """Return why the plugin is not called for *owner* now; empty if it is."""
        now = self.clock()
        self._forget(now)
        if now - self._suspended_at < SUSPENSION_SECONDS:
            return self._suspended_for
        if self.ended and (problem := self._refused_for_ends(owner[0], now)):
            return problem
        late = self.pods.get(hash(owner))
        if late is not None and now - late.at < late.wait:
            return f"not called for this pod for {late.wait:g} s: {late.why}"
        debt = self._debts.get(owner[0])
        free = MOST_SECONDS if late is None else FREE_SECONDS
        if debt is not None and debt.left(now) > free:
            whom = "pods" if late is None else "pods that overran"
            return (
                f"called for {whom} of this namespace less than {SHARE:.0%} of the time: overruns"
            )
        return ""

    def budget_share(self, owner: Owner) -> float:
        """Return which part of the plugin's time budget a call for *owner* gets."""
        debt = self._debts.get(owner[0])
        return LESS if debt is not None and debt.left(self.clock()) else 1.0

    def overran(self, owner: Owner, point: str, where: str, seconds: float) -> None:
        """Note that a call for *owner*, at *point*, took *seconds* until it gave up at *where*."""
        now, key = self.clock(), hash(owner)
        former = self.pods.pop(key, None)
        count = former.count + 1 if former else 1
        wait = min(FIRST_WAIT * 2 ** min(count - 1, 16), LONGEST_WAIT)
        times = "1 overrun" if count == 1 else f"{count} overruns"
        why = f"{times}, the last in {point}{where}"
        self.pods[key] = _Late(count, point, why, now, wait, seconds)
        if len(self.pods) > MOST_PODS:
            self.pods.popitem(last=False)
        namespace = owner[0]
        debt = self._debts.pop(namespace, None)
        taken = seconds + (debt.left(now) if debt else 0.0)
        # So that nobody waits for longer than the longest of pods.
        self._debts[namespace] = _Debt(min(taken, MOST_SECONDS + SHARE * LONGEST_WAIT), now)
        if len(self._debts) > MOST_NAMESPACES:
            self._debts.popitem(last=False)
        in_a_row = self._in_a_row.setdefault(point, set())
        in_a_row.add(namespace)
        if len(in_a_row) >= NAMESPACES:
            in_a_row.clear()
            self._suspended_at = now
            self._suspended_for = (
                f"suspended for {SUSPENSION_SECONDS:g} s: overruns of pods of {NAMESPACES} "
                f"namespaces, the last in {point}{where}"
            )

    def ended_process(self, owner: Owner, how: str) -> None:
        """Note that the process ended, and *how*, while it ran the plugin for *owner*."""
        now, namespace = self.clock(), owner[0]
        former = self.ended.pop(namespace, None)
        count = former.count + 1 if former and now - former.at < ENDED_SECONDS else 1
        self.ended[namespace] = _Ended(count, how, now)
        if len(self.ended) > MOST_NAMESPACES:
            self.ended.popitem(last=False)
        self.pods.pop(hash(owner), None)
        self.pods[hash(owner)] = _Late(1, "", _times(1, how), now, ENDED_SECONDS)
        if len(self.pods) > MOST_PODS:
            self.pods.popitem(last=False)

    def ended_thread(self, where: str) -> None:
        """Note that one of its threads never ended by itself, and *where* it was at last."""
        count = self._thread.count + 1
        times = "once" if count == 1 else f"{count} times"
        how = f"a thread that kept the processor was ended, {times}, the last time at {where}"
        self._thread = _Ended(count, how, self.clock())

    def kept_thread(self, where: str) -> None:
        """Note that one of its threads cannot be ended, and *where* it was when that was found."""
        how = f"a thread that keeps the processor cannot be ended, at {where}"
        self._thread = _Ended(self._thread.count, how, self.clock())

    def _refused_for_ends(self, namespace: str, now: float) -> str:
        lately = [each for each in self.ended.values() if now - each.at < ENDED_SECONDS]
        count = sum(each.count for each in lately)
        if len(lately) > 1 and count >= MOST_ENDS:
            return f"suspended for {ENDED_SECONDS:g} s: {_times(count, lately[-1].how)}"
        own = self.ended.get(namespace)
        if own is None or own.count < MOST_ENDS or now - own.at >= ENDED_SECONDS:
            return ""
        whom = "pods of this namespace"
        return f"suspended for {ENDED_SECONDS:g} s for {whom}: {_times(own.count, own.how)}"

    def succeeded(self, owner: Owner, point: str) -> None:
        """Note a call for *owner* at *point* within the budget."""
        if in_a_row := self._in_a_row.get(point):
            in_a_row.clear()
        late = self.pods.get(hash(owner))
        if late is not None and late.point == point:
            del self.pods[hash(owner)]

    def _forget(self, now: float) -> None:
        while self.pods and now - next(iter(self.pods.values())).at > FORGET_SECONDS:
            self.pods.popitem(last=False)
        while self._debts and not next(iter(self._debts.values())).left(now):
            self._debts.popitem(last=False)
