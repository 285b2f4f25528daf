"""The filter half of a cycle: which nodes can run the pod, and why not the others.

It goes to one replica, or in shards to several, if that is worth it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gateway.calls import CallFailedError, FilterOutcome
from gateway.decisions import FilterRecord
from gateway.half import Half, cycle_of, gathered
from gateway.merging import (
    Codes,
    FilteredShard,
    agree,
    merge_verdicts,
)
from gateway.nodes import UNKNOWN, Candidates, Mask
from gateway.records import filter_record
from gateway.replicas.work import Message
from gateway.sharding import Positions, split
from gateway.subject import Subject
from moorage.v1 import filter_pb2

UNKNOWN_NODE = "node(s) not known to Moorage yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What came of a filter half.

    Attributes:
        outcome: For kube-scheduler.
        record: For the decision.
        generation: Of the state.
        found: The nodes of the call.
        kept: Which of them are feasible, in the order of the call.
    """

    outcome: FilterOutcome
    record: FilterRecord
    generation: int
    found: Candidates
    kept: Mask


class FilterHalf(Half):
    """Has filter replicas split nodes into feasible and rejected ones."""

    async def run(self, subject: Subject) -> "Filtered":
        """Return the outcome for the subject's nodes.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        count = self.shards(subject)
        filtered = await self._scattered(subject, count) if count > 1 else None
        if filtered is None:  # not worth it, or the shards do not go together
            count, filtered = 1, await self._filtered(subject, len(subject.names))
        result, found, codes = filtered.result, filtered.found, filtered.codes
        record = filter_record(result, codes, len(found.unknown), count)
        self.metrics.filtered(record)
        by_position = found.spread(codes.astype(np.int32), UNKNOWN)
        kept = by_position == 0
        return Filtered(
            outcome=self._outcome(subject, by_position, kept, result.reasons),
            record=record,
            generation=result.generation,
            found=found,
            kept=kept,
        )

    async def _scattered(self, subject: Subject, count: int) -> FilteredShard | None:
        """Filter in shards; None if a plugin failed in one that worked in another.

        Which nodes the plugins after it saw depends on that, so the whole is filtered at once then.
        """
        found = self.lookup.find(subject.names, subject.given)
        parts = split(found.positions, count)
        shards = await gathered(self._filtered(subject, len(part), part) for part in parts)
        if not agree([shard.result for shard in shards]):
            return None
        return merge_verdicts(shards, found.unknown)

    async def _filtered(
        self, subject: Subject, nodes: int, part: Positions | None = None
    ) -> FilteredShard:
        def make(found: Candidates) -> Message:
            about = found if part is None else found.among(part)
            return Message(cycle=cycle_of(subject, about), about=about)

        if part is None and subject.given is None:
            usual = self.lookup.usual(subject.names)
            shard = None if usual is None else await self._of_usual(subject, usual, make)
            if shard is not None:
                return shard
        result, found = await self.ask(subject, nodes, make)
        return FilteredShard(result, found, self._codes(result, len(found.positions)))

    async def _of_usual(
        self, subject: Subject, usual: Candidates, make: Callable[[Candidates], Message]
    ) -> FilteredShard | None:
        """Have the nodes filtered before their names are looked up; None if they are others."""
        version = self.lookup.rows_version

        def right() -> bool:
            found = self.lookup.find(subject.names, None)
            right = version == self.lookup.rows_version and found.bitmap == usual.bitmap
            self.metrics.usual(right=right)
            return right

        try:
            result, _ = await self.ask(subject, len(subject.names), make, expected=usual)
        except CallFailedError:
            if right():
                raise
            return None  # a plugin may have failed because of a node that the call does not name
        if not right():
            return None
        found = self.lookup.find(subject.names, None)
        return FilteredShard(result, found, self._codes(result, len(found.rows)))

    def _codes(self, result: filter_pb2.FilterResult, count: int) -> Codes:
        if not result.verdicts:
            return np.zeros(count, np.uint16)
        if len(result.verdicts) != 2 * count:
            raise self.nonsense("verdicts do not match the nodes")
        codes = np.frombuffer(result.verdicts, "<u2")
        if codes.max(initial=0) > len(result.reasons):
            raise self.nonsense("a verdict has no reason")
        return codes

    def _outcome(
        self,
        subject: Subject,
        by_position: npt.NDArray[np.int32],
        kept: Mask,
        reasons: Sequence[filter_pb2.Reason],
    ) -> FilterOutcome:
        names, feasible = subject.names, self.lookup.chosen(subject.names, kept)
        if feasible is names:
            return FilterOutcome(feasible=names)
        failed: dict[str, str] = {}
        unresolvable = dict.fromkeys(_named(names, by_position == UNKNOWN), UNKNOWN_NODE)
        for code, reason in enumerate(reasons, start=1):
            rejected = dict.fromkeys(_named(names, by_position == code), reason.text)
            (unresolvable if reason.unresolvable else failed).update(rejected)
        return FilterOutcome(feasible=feasible, failed=failed, unresolvable=unresolvable)


def _named(names: Sequence[str], mask: Mask) -> Iterator[str]:
    return (names[i] for i in np.flatnonzero(mask).tolist())
