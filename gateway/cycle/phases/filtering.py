"""The filter phase of a cycle: which nodes can run the pod, and why the others cannot.

It goes to one replica, or in shards to several if that is worth it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from gateway.calls import CycleRequest, FilterOutcome
from gateway.calls.node_set import NodeRows, Positions
from gateway.cycle.phases.merging import (
    Codes,
    ShardVerdicts,
    agree,
    merge_verdicts,
    of_one_version,
)
from gateway.cycle.phases.phase import ReplicaPhase, fill_cycle, gather
from gateway.cycle.phases.sharding import split
from gateway.decisions.from_protobuf import filter_record, kept_values
from gateway.decisions.records import UNKNOWN_NODE as UNKNOWN_NODE
from gateway.decisions.records import FilterRecord
from gateway.replicas.work import VersionGoneError
from moorage.plugin.cycle_state import KeptValue
from moorage.v1 import filter_pb2

UNKNOWN_NODE_CODE = 0xFFFF
"""The verdict on nodes that have no row; a cycle never has so many reasons."""


class FilterPhaseResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The result of a filter phase.

    Attributes:
        outcome: For kube-scheduler.
        record: For the decision.
        generation: The verdicts are of this generation of the state, or of a later one.
        verdicts: What replicas or the cache answered, by row.
        cycle_state: What plugins keep for the bind.
    """

    outcome: FilterOutcome
    record: FilterRecord
    generation: int
    verdicts: ShardVerdicts
    cycle_state: Mapping[str, KeptValue] = {}


class FilterPhase(ReplicaPhase):
    """Has filter replicas split nodes into feasible and rejected ones."""

    async def run(self, request: CycleRequest) -> FilterPhaseResult:
        """Return the result for the nodes of the request; see `Phase.run`."""
        (count, version), since = self.shards(request), self.index.state.generation
        verdicts = await self._filter_in_shards(request, count, version) if count > 1 else None
        if verdicts is None:  # not worth it, or the shards disagree about a failure
            count, verdicts = 1, await self._filter(request, len(request.nodes))
        # A replica reports the generation it was sent; not all changes are sent to replicas.
        generation = max(verdicts.result.generation, since)
        result = to_result(request, verdicts, generation, count)
        self.metrics.filtered(result.record)
        return result

    async def _filter_in_shards(
        self, request: CycleRequest, count: int, version: str
    ) -> ShardVerdicts | None:
        """Filter in shards; None if a plugin failed in one shard and worked in another.

        Which nodes the plugins after it saw depends on that, so all nodes are filtered at once.
        The same if no replica with this version of plugins is left.
        """
        parts = split(self.index.find(request.nodes).positions, count)
        try:
            shards = await gather(self._filter(request, len(part), part, version) for part in parts)
        except VersionGoneError:
            return None
        if not of_one_version(shards) or not agree([shard.result for shard in shards]):
            return None
        return merge_verdicts(shards)

    async def _filter(
        self,
        request: CycleRequest,
        nodes: int,
        part: Positions | None = None,
        version: str = "",
    ) -> ShardVerdicts:
        def fill(message: Any, rows: NodeRows) -> NodeRows:
            asked = rows if part is None else rows.subset(part)
            fill_cycle(message.cycle, request, asked)
            return asked

        return self._checked(*await self.ask(request, nodes, fill, version=version))

    def _checked(
        self, result: filter_pb2.FilterResult, rows: NodeRows, version: str
    ) -> ShardVerdicts:
        verdicts, reasons = result.verdicts, len(result.reasons)
        if not verdicts:
            codes = np.zeros(rows.count, np.uint16)
            return ShardVerdicts(result, rows, codes, [rows.count] + [0] * reasons, version)
        if len(verdicts) != 2 * rows.count:
            raise self.invalid("verdicts do not match the nodes")
        codes = np.frombuffer(verdicts, "<u2")
        counts = np.bincount(codes, minlength=reasons + 1).tolist()
        if len(counts) > reasons + 1:
            raise self.invalid("a verdict has no reason")
        return ShardVerdicts(result, rows, codes, counts, version)


def to_result(
    request: CycleRequest, verdicts: ShardVerdicts, generation: int, shards: int = 1
) -> FilterPhaseResult:
    """Return what verdicts on the request's nodes, from so many replicas, amount to."""
    result, rows = verdicts.result, verdicts.rows
    return FilterPhaseResult(
        outcome=_outcome(request, verdicts),
        record=filter_record(result, verdicts.counts, rows.unknown, shards, verdicts.version),
        generation=generation,
        verdicts=verdicts,
        cycle_state=kept_values(result.cycle_state) if result.cycle_state else {},
    )


def _outcome(request: CycleRequest, verdicts: ShardVerdicts) -> FilterOutcome:
    nodes, rows = request.nodes, verdicts.rows
    by_position = rows.to_call_order(verdicts.codes, UNKNOWN_NODE_CODE)
    feasible = nodes.restricted(by_position == 0)
    if feasible is nodes:
        return FilterOutcome(feasible=nodes)
    failed, unresolvable = _reasons(nodes.names, by_position, verdicts.result.reasons)
    return FilterOutcome(feasible=feasible, failed=failed, unresolvable=unresolvable)


def _reasons(
    names: Sequence[str], by_position: Codes, reasons: Sequence[filter_pb2.Reason]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the reason by node, for nodes that evicting pods might cure, and for the others."""
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    targets = {
        code: (unresolvable if reason.unresolvable else failed, reason.text)
        for code, reason in enumerate(reasons, start=1)
    }
    targets[UNKNOWN_NODE_CODE] = (unresolvable, UNKNOWN_NODE)
    (rejected,) = by_position.nonzero()
    codes = by_position[rejected].tolist()
    for position, code in zip(rejected.tolist(), codes, strict=True):
        target, text = targets[code]
        target[names[position]] = text
    return failed, unresolvable
