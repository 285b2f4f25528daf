"""Who overran a plugin's time budget lately, and for whom the plugin is not called until when.

All pods share the thread that plugins run in, so what one pod costs, the others wait. A pod that
overran fails at once for a while, longer each time, and pods of its namespace have less time. Where
several do, their next attempts together get a small share of the time; past a limit, all pods of
the namespace wait for that share. The plugin is suspended for everybody only if pods of several
namespaces overran with no call in between that went well: then it is the plugin, not a pod.
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

    For how long it is refused, in seconds.
    """

    count: int
    point: str
    why: str
    at: float
    wait: float


@dataclass(slots=True)
class _Debt:
    """What a namespace's overruns have taken beyond its share, in seconds, at some time.

    `where` the last one gave up.
    """

    seconds: float
    at: float
    where: str

    def left(self, now: float) -> float:
        return max(0.0, self.seconds - SHARE * (now - self.at))


@dataclass(slots=True, kw_only=True)
class Overruns:
    """Overruns of one plugin.

    Attributes:
        clock: A monotonic clock, in seconds.
        pods: Those that overran lately, the latest last. While there are none, nobody is refused.
    """

    clock: Callable[[], float] = time.monotonic
    pods: OrderedDict[int, _Late] = field(default_factory=OrderedDict)
    _debts: OrderedDict[str, _Debt] = field(default_factory=OrderedDict)
    _in_a_row: dict[str, set[str]] = field(default_factory=dict)
    _suspended_at: float = float("-inf")
    _suspended_for: str = ""

    @property
    def problem(self) -> str:
        """Return why the plugin is called for nobody now; empty if it is."""
        is_suspended = self.clock() - self._suspended_at < SUSPENSION_SECONDS
        return self._suspended_for if is_suspended else ""

    def refusal(self, owner: Owner) -> str:
        """Return why the plugin is not called for *owner* now; empty if it is."""
        now = self.clock()
        self._forget(now)
        if now - self._suspended_at < SUSPENSION_SECONDS:
            return self._suspended_for
        late = self.pods.get(hash(owner))
        if late is not None and now - late.at < late.wait:
            return f"not called for this pod for {late.wait:g} s: {late.why}"
        debt = self._debts.get(owner[0])
        free = MOST_SECONDS if late is None else FREE_SECONDS
        if debt is not None and debt.left(now) > free:
            whom = "pods" if late is None else "pods that overran"
            return (
                f"called for {whom} of this namespace less than {SHARE:.0%} of the time: overruns, "
                f"the last in {debt.where}"
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
        self.pods[key] = _Late(count, point, why, now, wait)
        if len(self.pods) > MOST_PODS:
            self.pods.popitem(last=False)
        namespace = owner[0]
        debt = self._debts.pop(namespace, None)
        taken = seconds + (debt.left(now) if debt else 0.0)
        # So that nobody waits for longer than the longest of pods.
        taken = min(taken, MOST_SECONDS + SHARE * LONGEST_WAIT)
        self._debts[namespace] = _Debt(taken, now, f"{point}{where}")
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
