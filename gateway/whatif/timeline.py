"""Makes the cluster state of each recorded cycle again.

A cycle is recorded when it has ended, after changes that it may not have seen. So changes wait here
until a cycle asks for their generation.
"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from gateway.cycle.nodes import rows_of
from gateway.cycle.scores import PluginScores, Scores
from gateway.cycle.verdicts import Reason, Verdicts
from gateway.journal.segments import JournalError, Torn, read_segment
from gateway.whatif.comparing import Outcome
from moorage.models import Pod, decode_node, decode_pod
from moorage.snapshot.placements import Placements
from moorage.v1 import journal_pb2 as pb
from moorage_host.plugins import Replica
from moorage_host.rpc.state import MISTAKES, apply_state

LONGEST_CYCLE = 300.0
"""Seconds after which no cycle asks for an older state."""


@dataclass(slots=True, kw_only=True)
class Recorded:
    """A recorded cycle with its policy, its pod, what came of it, and when it ended (Unix time)."""

    cycle: pb.JournalCycle
    pod: Pod
    outcome: Outcome
    time: float
    policy: pb.JournalPolicy


@dataclass(slots=True)
class Missing:
    """What a journal has and what cannot be replayed, by cause, in cycles."""

    notes: list[str] = field(default_factory=list)
    causes: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    is_redacted: bool = False

    def count(self, cause: str) -> None:
        """Count a cycle."""
        self.causes[cause] = self.causes.get(cause, 0) + 1


class Timeline:
    """Goes through segments.

    Attributes:
        replica: The cluster state, of the generation of the newest cycle.
        missing: What could not be replayed so far.
    """

    def __init__(self) -> None:
        self.replica = Replica()
        self.missing = Missing()
        self._time = 0.0
        self._waiting: deque[tuple[float, pb.JournalRecord, Path, int]] = deque()

    async def cycles(self, paths: Sequence[Path]) -> AsyncIterator[Recorded]:
        """Yield the cycles whose state is known; at each of them the state is what it saw.

        Raises:
            JournalError: A segment is damaged.
        """
        for path in paths:
            async for recorded in self._segment(path):
                yield recorded

    async def reach(self, generation: int) -> None:
        """Apply the changes up to a generation; raises JournalError."""
        while self._waiting and self._waiting[0][1].state.generation <= generation:
            await self._apply(*self._waiting.popleft())

    async def _segment(self, path: Path) -> AsyncIterator[Recorded]:
        self.replica, policy, torn = Replica(), None, Torn()
        self._waiting.clear()
        is_complete = False
        for offset, record in read_segment(path, torn):
            match record.WhichOneof("record"):
                case "header":
                    self.missing.dropped.update(record.header.dropped)
                    self.missing.is_redacted |= record.header.redacted
                case "state":
                    is_complete = await self._take(record, path, offset) or is_complete
                case "policy":
                    policy = record.policy
                case "cycle":
                    cause = self._cause(record.cycle, policy, is_complete=is_complete)
                    if cause or policy is None:
                        self.missing.count(cause)
                        continue
                    await self.reach(record.cycle.generation)
                    yield _recorded(record, policy, path, offset)
                case _:
                    pass
        if torn.note:
            self.missing.notes.append(torn.note)
        if not is_complete:
            self.missing.notes.append(f"{path}: its snapshot of the state is not complete")

    async def _take(self, record: pb.JournalRecord, path: Path, offset: int) -> bool:
        """Take over a state record; return whether it ends the snapshot."""
        if self.replica.generation == 0:
            await self._apply(record.time, record, path, offset)
            return self.replica.generation > 0
        self._waiting.append((record.time, record, path, offset))
        while self._waiting[0][0] < record.time - LONGEST_CYCLE:
            await self._apply(*self._waiting.popleft())
        return False

    def _cause(
        self, cycle: pb.JournalCycle, policy: pb.JournalPolicy | None, *, is_complete: bool
    ) -> str:
        """Return why a cycle cannot be replayed; empty if it can."""
        if cycle.error:
            return "it failed"
        if not cycle.HasField("verdicts") and not cycle.HasField("scores"):
            return "no plugin was asked"
        if not is_complete or cycle.generation < self.replica.generation:
            return "its state is not in the segment"
        if policy is None or cycle.policy_revision != policy.revision:
            return "its policy is not in the segment"
        return ""

    async def _apply(self, time: float, record: pb.JournalRecord, path: Path, offset: int) -> None:
        self._time, state = time, record.state
        try:
            await apply_state(self.replica, state)
        except MISTAKES as error:
            raise JournalError(f"{path}: offset {offset}: a state is damaged: {error}") from error
        if state.full:
            # Plugins that look at how long pods have been there see the recorded time.
            self.replica.snapshot.placements = Placements(lambda: self._time)
        if not state.partial:
            self.replica.generation = state.generation


def _recorded(
    record: pb.JournalRecord, policy: pb.JournalPolicy, path: Path, offset: int
) -> Recorded:
    """Return a cycle that fits together.

    Raises:
        JournalError: It does not.
    """
    cycle = record.cycle
    try:
        for node in cycle.overrides:
            decode_node(node.json)
        return Recorded(
            cycle=cycle,
            pod=decode_pod(cycle.pod),
            outcome=recorded_outcome(cycle),
            time=record.time,
            policy=policy,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise JournalError(f"{path}: offset {offset}: a cycle is damaged: {error}") from error


def recorded_outcome(cycle: pb.JournalCycle) -> Outcome:
    """Return what was recorded; no journal has normalised scores.

    Raises:
        ValueError: It does not fit together.
    """
    has_verdicts = cycle.HasField("verdicts")
    outcome = Outcome(
        rows=rows_of(cycle.verdicts.nodes if has_verdicts else cycle.scores.nodes),
        verdicts=_verdicts(cycle.verdicts) if has_verdicts else None,
        scores=_scores(cycle.scores) if cycle.HasField("scores") else None,
        claimants=tuple(cycle.verdicts.claimants),
        failures=tuple(cycle.failures),
        error=cycle.error,
    )
    scores = outcome.scores
    lengths = {len(each.raw) for each in scores.plugins} | {len(scores.totals)} if scores else set()
    fits = len(outcome.codes) == len(outcome.rows) and lengths <= {int(outcome.scored.sum())}
    if not fits or outcome.codes.max(initial=0) > len(cycle.verdicts.reasons):
        raise ValueError("its verdicts or scores do not match its nodes")
    return outcome


def _verdicts(verdicts: pb.JournalVerdicts) -> Verdicts:
    codes = np.frombuffer(verdicts.codes, "<u2")
    if not verdicts.codes:
        codes = np.zeros(len(rows_of(verdicts.nodes)), np.uint16)
    reasons = [Reason(each.plugin, each.text, each.unresolvable) for each in verdicts.reasons]
    return Verdicts(bitmap=verdicts.nodes, codes=codes, reasons=reasons)


def _scores(scores: pb.JournalScores) -> Scores:
    return Scores(
        generation=scores.generation,
        bitmap=scores.nodes,
        totals=np.frombuffer(scores.totals, "<f4"),
        plugins=[
            PluginScores(
                plugin=each.plugin,
                weight=each.weight,
                raw=np.frombuffer(each.raw, "<f8"),
                normalized=np.zeros(0, np.float32),
            )
            for each in scores.plugins
        ],
    )
