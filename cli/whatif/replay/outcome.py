"""What came of a cycle, recorded or replayed, in one form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from moorage.snapshot.snapshot import MAX_NODES
from moorage.v1 import journal_pb2 as pb

Rows = npt.NDArray[np.intp]
Codes = npt.NDArray[np.uint16]
Totals = npt.NDArray[np.float32]
Raw = npt.NDArray[np.float64]

_NONE: Rows = np.zeros(0, np.intp)


class Reason(NamedTuple):
    """Why a plugin rejects nodes."""

    plugin: str
    text: str

    def __str__(self) -> str:
        return f"{self.plugin}: {self.text}"


@dataclass(slots=True, eq=False)
class Outcome:
    """Verdicts and scores by row.

    Attributes:
        rows: The nodes that were filtered; none if no filter plugin was asked.
        codes: For each of them 0, or the number of the reason, from 1 on.
        reasons: Why nodes were rejected.
        claimants: The plugins that wanted the pod to claim its node.
        scored: The nodes that were scored.
        totals: Their totals.
        raw: Their raw scores by plugin.
        failures: Plugins that were left out, as PLUGIN: why.
        error: Why the cycle failed; empty if it did not.
    """

    rows: Rows = field(default_factory=lambda: _NONE)
    codes: Codes = field(default_factory=lambda: np.zeros(0, np.uint16))
    reasons: Sequence[Reason] = ()
    claimants: Sequence[str] = ()
    scored: Rows = field(default_factory=lambda: _NONE)
    totals: Totals = field(default_factory=lambda: np.zeros(0, np.float32))
    raw: Mapping[str, Raw] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def feasible(self) -> Rows:
        """The nodes that passed; those that were scored if no filter plugin was asked."""
        return self.rows[self.codes == 0] if len(self.rows) else self.scored

    @property
    def best(self) -> Rows:
        """The nodes with the highest total."""
        return self.scored[self.totals == self.totals.max()] if len(self.scored) else _NONE

    def reason_of(self, row: int) -> Reason | None:
        """Return why a node was rejected; None if it passed."""
        code = int(self.codes[np.searchsorted(self.rows, row)])
        return self.reasons[code - 1] if code else None

    def total_of(self, row: int) -> float | None:
        """Return a node's total; None if it was not scored."""
        index = np.searchsorted(self.scored, row)
        found = index < len(self.scored) and self.scored[index] == row
        return float(self.totals[index]) if found else None

    def alone(self, uid: str) -> tuple[bool, int | None]:
        """Return whether Moorage decides without kube-scheduler's scores, and for which row.

        None if no node is feasible.
        """
        feasible = self.feasible
        if len(feasible) < 2:
            return True, int(feasible[0]) if len(feasible) else None
        if not self.claimants:
            return False, None
        best = self.best if len(self.scored) else feasible
        return True, int(best[crc32(uid.encode()) % len(best)])  # as `gateway.cycle.claims` does


def recorded_outcome(cycle: pb.JournalCycle) -> Outcome:
    """Return what was recorded.

    Raises:
        ValueError: It does not fit together.
    """
    verdicts, scores = cycle.verdicts, cycle.scores
    outcome = Outcome(failures=list(cycle.failures), error=cycle.error)
    outcome.rows = rows_of(verdicts.nodes)
    outcome.codes = (
        np.frombuffer(verdicts.codes, "<u2")
        if verdicts.codes
        else np.zeros(len(outcome.rows), np.uint16)
    )
    outcome.reasons = [Reason(each.plugin, each.text) for each in verdicts.reasons]
    outcome.claimants = tuple(verdicts.claimants)
    outcome.scored = rows_of(scores.nodes)
    outcome.totals = np.frombuffer(scores.totals, "<f4")
    outcome.raw = {each.plugin: np.frombuffer(each.raw, "<f8") for each in scores.plugins}
    lengths = {len(outcome.totals), *(len(each) for each in outcome.raw.values())}
    fits = len(outcome.codes) == len(outcome.rows) and lengths <= {len(outcome.scored)}
    if not fits or (len(outcome.codes) and outcome.codes.max() > len(outcome.reasons)):
        raise ValueError("its verdicts or scores do not match its nodes")
    return outcome


def rows_of(bitmap: bytes) -> Rows:
    """Return the rows of a bitmap, in ascending order.

    Raises:
        ValueError: It is too long.
    """
    if len(bitmap) > MAX_NODES:
        raise ValueError(f"a bitmap of {len(bitmap)} bytes")
    return np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little").nonzero()[0]


def bitmap_of(rows: Rows) -> bytes:
    """Return rows as a bitmap."""
    mask = np.zeros(int(rows.max()) + 1, np.bool_)
    mask[rows] = True
    return np.packbits(mask, bitorder="little").tobytes()
