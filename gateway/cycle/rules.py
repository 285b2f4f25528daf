"""Rules of live cycles that what-if answers and simulations follow, too.

If they stood in several places and one of them changed, an answer would lie.
"""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt


def claimed(uid: str, names: Sequence[str], totals: npt.NDArray[Any] | None = None) -> int:
    """Return the position of the node that a pod claims: the best one.

    Equally good nodes are spread over the pods. Their order is that of their names: callers
    name nodes in an order of their own, and another copy of the state has other rows.

    Args:
        uid: The pod's UID.
        names: The names of the feasible nodes, at least one.
        totals: Their totals; None if no plugin had an opinion.
    """
    best: Sequence[int] = range(len(names))
    if totals is not None:
        totals = totals.astype(np.float32)  # their precision on the wire
        best = np.flatnonzero(totals == totals.max()).tolist()
    ordered = sorted(best, key=names.__getitem__)
    return ordered[crc32(uid.encode()) % len(ordered)]


def whole(totals: npt.ArrayLike, scale: int) -> npt.NDArray[np.int64]:
    """Return totals as the whole numbers 0..*scale* that are sent: 0.5 is rounded up."""
    return (np.asarray(totals, np.float64) * (scale / 100) + 0.5).astype(np.int64)


def ties(totals: npt.NDArray[Any], sent: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return how many nodes have the best total, and how many others rounding made equal to it.

    *sent* is `whole` of the totals.
    """
    if not len(totals):
        return 0, 0
    best = totals.argmax()
    shared = int(np.count_nonzero(totals == totals[best]))
    return shared, int(np.count_nonzero(sent == sent[best])) - shared
