"""Which pods came to their nodes recently: measurements of nodes may not show them yet.

A log of the last 30 minutes in numpy, written by the snapshot with every pod and weighed by plugins
in every cycle. Its length depends on how fast pods are placed, not on how many there are.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from moorage.models import Pod

Clock = Callable[[], float]
Amount = Callable[[Pod], float]
Floats = npt.NDArray[np.float64]

HORIZON: Final = 1800.0
"""For how many seconds a placement is kept."""

LONG_AGO: Final = -math.inf
"""When pods were placed of which only that is known."""

FIRST_CAPACITY: Final = 64
MAX_COLUMNS: Final = 32
"""For how many kinds of amounts those of pods are kept; the longest unused makes room."""


class Placements:
    """The pods that were placed within `HORIZON`, with times on a monotonic clock."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        # By slot; a slot that is free has a time long ago.
        self._pods: list[Pod | None] = [None] * FIRST_CAPACITY
        self._time = np.full(FIRST_CAPACITY, LONG_AGO)
        self._row = np.zeros(FIRST_CAPACITY, np.intp)
        self._columns: OrderedDict[Hashable, Floats] = OrderedDict()

    def __len__(self) -> int:
        return len(self._slot_of)

    def now(self) -> float:
        """Return the time of this clock in seconds."""
        return self._clock()

    def time_of(self, uid: str) -> float:
        """Return when the pod with *uid* was placed."""
        slot = self._slot_of.get(uid)
        return LONG_AGO if slot is None else float(self._time[slot])

    def add(self, row: int, pod: Pod, at: float) -> None:
        """Note that a pod that is not in the log was placed in *row* at that time."""
        if at < self.now() - HORIZON:
            return
        slot = self._slot_of[pod.uid] = self._new_slot()
        self._pods[slot], self._row[slot], self._time[slot] = pod, row, at
        for column in self._columns.values():
            column[slot] = np.nan

    def remove(self, uid: str) -> None:
        """Forget a pod, if it is in the log."""
        slot = self._slot_of.pop(uid, None)
        if slot is not None:
            self._pods[slot], self._time[slot] = None, LONG_AGO
            self._free.append(slot)

    def totals(
        self, key: Hashable, amount: Amount, *, within: float | Floats, fading: float, capacity: int
    ) -> Floats:
        """Return for each row the amounts of the pods placed recently; see `Nodes.newly_placed`.

        *within* is one number, or one for each row.
        """
        used = len(self._slot_of) + len(self._free)
        rows, ages = self._row[:used], self.now() - self._time[:used]
        late = ages - (within[rows] if isinstance(within, np.ndarray) else within)
        weights = np.clip(1 - late / fading, 0, 1) if fading > 0 else (late < 0).astype(np.float64)
        weights[ages > HORIZON] = 0
        recent = np.flatnonzero(weights)
        amounts = self._amounts(key, amount, recent) * weights[recent]
        return np.bincount(rows[recent], amounts, minlength=capacity).astype(np.float64)

    def _amounts(self, key: Hashable, amount: Amount, slots: npt.NDArray[np.intp]) -> Floats:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = np.full(len(self._time), np.nan)
            if len(self._columns) > MAX_COLUMNS:
                self._columns.popitem(last=False)
        self._columns.move_to_end(key)
        for slot in slots[np.isnan(column[slots])].tolist():
            pod = self._pods[slot]
            column[slot] = 0 if pod is None else amount(pod)
        return column[slots]

    def _new_slot(self) -> int:
        used = len(self._slot_of) + len(self._free)
        if not self._free and used == len(self._time):
            self._expire()
        if self._free:
            return self._free.pop()
        if used == len(self._time):
            self._grow()
        return used

    def _expire(self) -> None:
        for slot in np.flatnonzero(self._time < self.now() - HORIZON).tolist():
            pod = self._pods[slot]
            if pod is not None:
                self.remove(pod.uid)

    def _grow(self) -> None:
        size = len(self._time)
        self._pods.extend([None] * size)
        self._time = np.concatenate([self._time, np.full(size, LONG_AGO)])
        self._row = np.concatenate([self._row, np.zeros(size, np.intp)])
        for key, column in self._columns.items():
            self._columns[key] = np.concatenate([column, np.full(size, np.nan)])


def placed_at(pod: Pod, now: float) -> float:
    """Return when a pod was placed whose bind was not seen; by its creation if nothing else says.

    A pod that waits on its node and does not say since when is on its way there right now.

    Args:
        pod: A pod that has a node.
        now: The time of the clock of `Placements`.
    """
    if not pod.status.start_time and pod.status.phase == "Pending":
        return now
    try:
        placed = datetime.fromisoformat(pod.status.start_time or pod.metadata.creation_timestamp)
    except ValueError:
        return LONG_AGO
    if placed.tzinfo is None:
        placed = placed.replace(tzinfo=UTC)
    return now - max(time.time() - placed.timestamp(), 0)
