"""What is known of a scheduling cycle at its end, and who is called about it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.calls import CycleRequest
from gateway.decisions.records import Decision
from gateway.decisions.verdicts import NodeVerdicts, index_of

Names = Sequence[str | None]
"""The node in each row, None where there is none; see `gateway.cluster.rows.Rows.names`."""


class PluginScores(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A plugin's opinion of the nodes of a score phase, in ascending order of rows.

    Attributes:
        plugin: The plugin's name.
        weight: Its weight in the profile.
        raw: What it returned, in single precision if that is exact. Shape (nodes,).
        normalized: The same as 0..100; the array *raw* itself if that is equal. Shape (nodes,).
    """

    plugin: str
    weight: int
    raw: npt.NDArray[np.float32] | npt.NDArray[np.float64]
    normalized: npt.NDArray[np.float32]


class NodeScores(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The scores of a score phase, in ascending order of rows.

    Attributes:
        generation: The scores are of this generation of the state.
        bitmap: The rows that it was about.
        totals: The totals, 0..100. Shape (nodes,).
        plugins: The opinions that make them up, in the order in which the plugins ran.
    """

    generation: int
    bitmap: bytes
    totals: npt.NDArray[np.float32]
    plugins: Sequence[PluginScores]

    def index_of(self, row: int) -> int | None:
        """Return where the scores of a row are; None if it has none."""
        return index_of(self.bitmap, row)


class SchedulingCycle(msgspec.Struct, kw_only=True, eq=False):
    """A scheduling cycle: filter and score, score alone, or the filter of preempt.

    Attributes:
        request: The pod and the nodes.
        decision: What comes of it, or why it fails.
        verdicts: The verdict on each node; None if no filter plugin was asked.
        scores: The scores of each feasible node; None if no score plugin was asked, or none had an
            opinion.
        names: The nodes by row when it began; cycles share the object until a node comes or goes.
        names_after: The same at its end.
        start: When it began, by `time.perf_counter()`.
        is_scoring: Whether it goes on after the filter call was answered.
    """

    request: CycleRequest
    decision: Decision
    verdicts: NodeVerdicts | None = None
    scores: NodeScores | None = None
    names: Names = ()
    names_after: Names = ()
    start: float = 0.0
    is_scoring: bool = False


class CycleObserver(Protocol):
    """Is called about each cycle, in the event loop: it must return at once, and never raises."""

    def ended(self, cycle: SchedulingCycle) -> None:
        """Note a scheduling cycle that has ended, perhaps with an error."""

    def bound(self, decision: Decision) -> None:
        """Note that the outcome of a bind is in a decision."""
