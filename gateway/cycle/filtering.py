"""The filter half of a cycle: which nodes can run the pod, and why not the others.

It goes to one replica, or in shards to several, if that is worth it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from gateway.calls import CallFailedError, FilterOutcome
from gateway.cycle.merging import (
    Codes,
    FilteredShard,
    agree,
    merge_verdicts,
)
from gateway.cycle.node_set import Candidates, Mask, Positions
from gateway.cycle.phase import Half, fill_cycle, gathered
from gateway.cycle.request import Subject
from gateway.cycle.sharding import split
from gateway.decisions.from_protobuf import filter_record
from gateway.decisions.log import FilterRecord
from moorage.v1 import filter_pb2

UNKNOWN_NODE = "node(s) not known to Moorage yet"
OF_UNKNOWN = 0xFFFF
"""The code of nodes that have no row; there are never so many reasons."""


class Filtered(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What came of a filter half.

    Attributes:
        outcome: For kube-scheduler.
        record: For the decision.
        generation: Of the state: verdicts are of it, or of a later one.
        found: The nodes of the call.
        kept: Which of them are feasible, in the order of the call.
        verdicts: What replicas said, or what is remembered of that.
    """

    outcome: FilterOutcome
    record: FilterRecord
    generation: int
    found: Candidates
    kept: Mask
    verdicts: FilteredShard


class FilterHalf(Half):
    """Has filter replicas split nodes into feasible and rejected ones."""

    async def run(self, subject: Subject) -> Filtered:
        """Return the outcome for the subject's nodes.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        count, since = self.shards(subject), self.lookup.generation
        filtered = await self._scattered(subject, count) if count > 1 else None
        if filtered is None:  # not worth it, or the shards do not go together
            count, filtered = 1, await self._filtered(subject, len(subject.names))
        # Replicas say how far they are by what they were sent; not all changes are for them.
        told = self.tell(subject, filtered, max(filtered.result.generation, since), count)
        self.metrics.filtered(told.record)
        return told

    def tell(
        self, subject: Subject, verdicts: FilteredShard, generation: int, shards: int = 1
    ) -> Filtered:
        """Return what *verdicts* on the subject's nodes, from so many replicas, mean."""
        result, found = verdicts.result, verdicts.found
        by_position = found.spread(verdicts.codes, OF_UNKNOWN)
        kept = by_position == 0
        return Filtered(
            outcome=self._outcome(subject, by_position, kept, result.reasons),
            record=filter_record(result, verdicts.counts, found.unknown, shards),
            generation=generation,
            found=found,
            kept=kept,
            verdicts=verdicts,
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
        return merge_verdicts(shards)

    async def _filtered(
        self, subject: Subject, nodes: int, part: Positions | None = None
    ) -> FilteredShard:
        def fill(request: Any, found: Candidates) -> Candidates:
            about = found if part is None else found.among(part)
            fill_cycle(request.cycle, subject, about)
            return about

        if part is None and subject.given is None:
            usual = self.lookup.usual(subject.names)
            shard = None if usual is None else await self._of_usual(subject, usual, fill)
            if shard is not None:
                return shard
        result, found = await self.ask(subject, nodes, fill)
        return self._shard(result, found)

    async def _of_usual(
        self,
        subject: Subject,
        usual: Candidates,
        fill: Callable[[Any, Candidates], Candidates],
    ) -> FilteredShard | None:
        """Have the nodes filtered before their names are looked up; None if they are others."""
        version = self.lookup.rows_version

        def right() -> bool:
            found = self.lookup.find(subject.names, None)
            right = version == self.lookup.rows_version and found.bitmap == usual.bitmap
            self.metrics.usual(right=right)
            return right

        try:
            result, _ = await self.ask(subject, len(subject.names), fill, expected=usual)
        except CallFailedError:
            if right():
                raise
            return None  # a plugin may have failed because of a node that the call does not name
        if not right():
            return None
        found = self.lookup.find(subject.names, None)
        return self._shard(result, found)

    def _shard(self, result: filter_pb2.FilterResult, found: Candidates) -> FilteredShard:
        verdicts, reasons = result.verdicts, len(result.reasons)
        if not verdicts:
            codes = np.zeros(found.count, np.uint16)
            return FilteredShard(result, found, codes, [found.count] + [0] * reasons)
        if len(verdicts) != 2 * found.count:
            raise self.nonsense("verdicts do not match the nodes")
        codes = np.frombuffer(verdicts, "<u2")
        counts = np.bincount(codes, minlength=reasons + 1).tolist()
        if len(counts) > reasons + 1:
            raise self.nonsense("a verdict has no reason")
        return FilteredShard(result, found, codes, counts)

    def _outcome(
        self,
        subject: Subject,
        by_position: Codes,
        kept: Mask,
        reasons: Sequence[filter_pb2.Reason],
    ) -> FilterOutcome:
        names, feasible = subject.names, self.lookup.chosen(subject.names, kept)
        if feasible is names:
            return FilterOutcome(feasible=names)
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        said = {
            code: (unresolvable if reason.unresolvable else failed, reason.text)
            for code, reason in enumerate(reasons, start=1)
        }
        said[OF_UNKNOWN] = (unresolvable, UNKNOWN_NODE)
        (rejected,) = by_position.nonzero()
        codes = by_position[rejected].tolist()
        for position, code in zip(rejected.tolist(), codes, strict=True):
            of_sort, text = said[code]
            of_sort[names[position]] = text
        return FilterOutcome(feasible=feasible, failed=failed, unresolvable=unresolvable)
