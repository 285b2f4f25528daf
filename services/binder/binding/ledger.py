"""What the binder records of binds that have ended.

Two things, both bounded. `UnresolvedBinds` has what an attempt left open, for the next attempt of
the same pod: a request whose outcome is not known, a Retry-After. `BindHistory` has what was
written in the last minutes, for a gateway that takes over and whose watch has not shown it; what no
longer fits shortens the memory, whose length the gateway learns.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from moorage import Binding

OURS = "moorage.io/"
"""How keys of Moorage's own annotations begin."""


class UnresolvedBind(msgspec.Struct):
    """What is known of a pod from the requests so far.

    Attributes:
        node: Where a request without a known outcome may have bound the pod, or may still bind it.
        not_before: When the API server takes the next request, on the monotonic clock.
    """

    node: str = ""
    not_before: float = 0.0


class UnresolvedBinds:
    """The pods whose last attempt left something open, the newest *limit*."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_uid: OrderedDict[str, UnresolvedBind] = OrderedDict()

    def take(self, uid: str) -> UnresolvedBind:
        """Return what is open of a pod, which is kept no longer."""
        return self._by_uid.pop(uid, None) or UnresolvedBind()

    def keep(self, uid: str, unresolved: UnresolvedBind) -> None:
        """Keep what is open of a pod until its next attempt, if anything is."""
        if unresolved.node or unresolved.not_before > time.monotonic():
            self._by_uid[uid] = unresolved
            if len(self._by_uid) > self._limit:
                self._by_uid.popitem(last=False)


class RecordedBind(msgspec.Struct, frozen=True):
    """A pod that is on a node, or may be if the API server's answer got lost (*unknown*).

    It has the annotations that the bind wrote, without Moorage's own.
    """

    namespace: str
    name: str
    uid: str
    node: str
    unknown: bool
    annotations: Mapping[str, str] = {}


def recorded(binding: Binding, node: str, *, unknown: bool) -> RecordedBind:
    """Return a bind to *node*, which may be another than that of the newest *binding*."""
    annotations: Mapping[str, str] = {}
    if binding.annotations and node == binding.node:
        written = binding.annotations.items()
        annotations = {key: value for key, value in written if not key.startswith(OURS)}
    return RecordedBind(binding.namespace, binding.name, binding.uid, node, unknown, annotations)


class BindHistory:
    """What this binder wrote.

    Args:
        limit: Binds to keep; the oldest is forgotten first.
        age: For how many seconds each is kept.
        clock: A monotonic clock.
    """

    def __init__(self, limit: int, age: float, *, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._age = age
        self._clock = clock
        self._complete_since = clock()
        # By uid and node, with the time when the outcome was known or given up; oldest first.
        self._binds: OrderedDict[tuple[str, str], tuple[float, RecordedBind]] = OrderedDict()

    def add(self, binding: Binding, node: str, *, unknown: bool) -> None:
        """Keep a bind to *node* whose outcome is known, or will not be found out."""
        binds, now = self._binds, self._clock()
        key = binding.uid, node
        bind = recorded(binding, node, unknown=unknown)
        binds.pop(key, None)
        binds[key] = now, bind
        while len(binds) > self._limit:
            _, (self._complete_since, _) = binds.popitem(last=False)
        while binds and now - next(iter(binds.values()))[0] > self._age:
            binds.popitem(last=False)

    def discard(self, uid: str, node: str) -> None:
        """Forget a bind of which it has turned out that it was not written."""
        self._binds.pop((uid, node), None)

    def recall(self) -> tuple[list[RecordedBind], float]:
        """Return the binds, newest last, and for how many seconds back they are complete."""
        now = self._clock()
        binds = [bind for at, bind in self._binds.values() if now - at <= self._age]
        return binds, min(now - self._complete_since, self._age)
