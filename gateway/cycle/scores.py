"""What score plugins say of nodes, by row; decoded once from what replicas answer."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle.decision import ScoreRecord
from gateway.cycle.nodes import index_of
from moorage.plugin.cycle_state import KeptValue


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


def _no_record() -> ScoreRecord:
    return ScoreRecord(nodes=0, seconds=0.0)


class Scores(msgspec.Struct, kw_only=True, eq=False):
    """The scores of a score phase, in ascending order of rows.

    Attributes:
        generation: The scores are of this generation of the state, or of a later one.
        bitmap: The rows that it was about.
        totals: The totals, 0..100; empty if no plugin has an opinion. Shape (nodes,).
        plugins: The opinions that make them up, in the order in which the plugins ran.
        record: What is kept of it: the best nodes, and what plugins report.
        kept: What plugins keep for the bind.
    """

    generation: int
    bitmap: bytes
    totals: npt.NDArray[np.float32]
    plugins: Sequence[PluginScores]
    record: ScoreRecord = msgspec.field(default_factory=_no_record)
    kept: Mapping[str, KeptValue] = {}

    def index_of(self, row: int) -> int | None:
        """Return where the scores of a row are; None if it has none."""
        return index_of(self.bitmap, row)
