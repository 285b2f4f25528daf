"""The verdicts of a filter phase by row: what a decision keeps of them for a while."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
import numpy as np
import numpy.typing as npt


class Reason(Protocol):
    """Why a plugin rejects nodes."""

    @property
    def plugin(self) -> str:
        """The plugin's name."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def unresolvable(self) -> bool:
        """Whether preempting pods would not help."""


class NodeVerdicts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The verdicts of a filter phase.

    Attributes:
        bitmap: The rows that it was about.
        codes: For each of them 0, or the number of the reason, from 1 on.
        reasons: Why nodes were rejected.
    """

    bitmap: bytes
    codes: npt.NDArray[np.uint16]
    reasons: Sequence[Reason]

    def on(self, row: int) -> Reason | Literal["feasible"] | None:
        """Return why the node in *row* was rejected; None if the phase was not about it."""
        index = index_of(self.bitmap, row)
        if index is None:
            return None
        code = int(self.codes[index])
        return self.reasons[code - 1] if code else "feasible"


def index_of(bitmap: bytes, row: int) -> int | None:
    """Return which of the rows of a bitmap *row* is; None if it is none."""
    rows = int.from_bytes(bitmap, "little")
    if not rows >> row & 1:
        return None
    return (rows & ((1 << row) - 1)).bit_count()
