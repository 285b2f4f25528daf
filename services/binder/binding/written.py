"""The binds of the last minutes, for a gateway that takes over and whose watch has not shown them.

Kept by `binder`. Bounded by number and age. What no longer fits shortens the memory, whose length
the gateway learns.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from moorage import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """How much to keep."""

    binds: int = 30_000
    """Binds; the oldest is forgotten first."""
    seconds: float = 300.0
    """How long each is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A pod that is on a node, or may be.

    Attributes:
        namespace: The pod's.
        name: The pod's.
        uid: The pod's.
        node: The node.
        unknown: The API server's answer got lost.
    """

    namespace: str
    name: str
    uid: str
    node: str
    unknown: bool


class WrittenBinds:
    """What this binder wrote.

    Args:
        limits: How much to keep.
        clock: A monotonic clock.
    """

    def __init__(self, limits: WrittenLimits, *, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._complete_since = clock()
        # By uid and node, with the time when the outcome was known or given up; oldest first.
        self._binds: OrderedDict[tuple[str, str], tuple[float, Written]] = OrderedDict()

    def add(self, binding: Binding, *, unknown: bool) -> None:
        """Keep a bind whose outcome is known, or will not be found out."""
        now = self._clock()
        key = binding.uid, binding.node
        self._binds[key] = now, written(binding, unknown=unknown)
        self._binds.move_to_end(key)
        self._forget_old(now)
        while len(self._binds) > self._limits.binds:
            _, (self._complete_since, _) = self._binds.popitem(last=False)

    def discard(self, uid: str, node: str) -> None:
        """Forget a bind of which it has turned out that it was not written."""
        self._binds.pop((uid, node), None)

    def recall(self) -> tuple[list[Written], float]:
        """Return the binds, newest last, and for how many seconds back they are complete."""
        now = self._clock()
        self._forget_old(now)
        seconds = min(now - self._complete_since, self._limits.seconds)
        return [bind for _, bind in self._binds.values()], seconds

    def _forget_old(self, now: float) -> None:
        while self._binds:
            at, _ = next(iter(self._binds.values()))
            if now - at <= self._limits.seconds:
                return
            self._binds.popitem(last=False)


def written(binding: Binding, *, unknown: bool) -> Written:
    """Return what a bind has done, or may have."""
    return Written(
        namespace=binding.namespace,
        name=binding.name,
        uid=binding.uid,
        node=binding.node,
        unknown=unknown,
    )
