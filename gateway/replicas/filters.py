"""The filter phase of a cycle: which nodes can run the pod, and why the others cannot.

It goes to one replica, or in shards to several if that is worth it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gateway.cycle import CallFailedError, Cycle, NodeSet
from gateway.cycle.decision import (
    FilterRecord,
    GroupRecord,
    PluginRecord,
    ReasonCount,
    ReasonNodes,
)
from gateway.cycle.nodes import NodeRows
from gateway.cycle.verdicts import Codes, Reason, Verdicts
from gateway.replicas.call import Found, ask
from gateway.replicas.kinds import Part
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.set import ReplicaSet, VersionGoneError
from gateway.replicas.sharding import (
    Sharding,
    agree,
    gather,
    join_kept,
    join_reports,
    read_kept,
    read_reports,
)
from gateway.settings import GatewaySettings
from moorage.v1 import types_pb2 as pb

NOTHING: Mapping[str, Any] = {}

Shard = tuple[Verdicts, NodeRows]


class NonsenseError(CallFailedError):
    """A result of a replica that cannot be right."""


class Filters:
    """Has filter replicas split the nodes of cycles into feasible and rejected ones."""

    def __init__(
        self, replicas: ReplicaSet, settings: GatewaySettings, metrics: ReplicaMetrics
    ) -> None:
        self.replicas = replicas
        self._sharding = Sharding(settings)
        self._metrics = metrics

    async def ask(self, cycle: Cycle, nodes: NodeSet) -> Shard:
        """Return the verdicts on some nodes for a cycle, and their rows.

        Raises:
            CallFailedError: The service fails, does not answer in time, or answers nonsense.
        """
        replicas = self.replicas
        since, answer = replicas.feed.state.generation, None
        if len(replicas.all) > 1:
            answer = await self._in_shards(cycle, nodes)
        if answer is None:  # not worth it, or the shards disagree about a failure
            found = await ask(replicas, cycle, Part(nodes=nodes, size=len(nodes.names)))
            answer = read(*found, replicas.metrics.invalid), found[1]
            if len(replicas.all) > 1:
                self._observe(cycle, found)
        verdicts = answer[0]
        # A replica reports the generation it was sent; not all changes are sent to replicas.
        verdicts.generation = max(verdicts.generation, since)
        self._metrics.ran("filter", verdicts.record, cycle.leads_to)
        return answer

    async def _in_shards(self, cycle: Cycle, nodes: NodeSet) -> Shard | None:
        """Filter in shards; None if that is not worth it.

        None, too, if a plugin failed in one shard and worked in another: which nodes the plugins
        after it saw depends on that, so all nodes are filtered at once. The same if no replica with
        this version of plugins is left.
        """
        version, alike = self.replicas.largest_version_group
        count = self._sharding.count((cycle.profile, cycle.plugin), len(nodes), alike)
        if count < 2 or not (rows := self.replicas.feed.index.find(nodes)).distinct:
            return None
        parts = np.array_split(rows.positions, count)
        try:
            shards = await gather(self._shard(cycle, nodes, part, version) for part in parts)
        except VersionGoneError:
            return None
        reports = [verdicts.record.plugins for verdicts, _ in shards]
        if len({verdicts.record.version for verdicts, _ in shards}) > 1 or not agree(reports):
            return None
        if any(verdicts.group is not None for verdicts, _ in shards):
            return None  # a group is placed on all nodes at once
        return join(shards)

    async def _shard(self, cycle: Cycle, nodes: NodeSet, positions: Any, version: str) -> Shard:
        part = Part(nodes=nodes, size=len(positions), positions=positions, version=version)
        found = await ask(self.replicas, cycle, part)
        self._observe(cycle, found)
        return read(*found, self.replicas.metrics.invalid), found[1]

    def _observe(self, cycle: Cycle, found: Found) -> None:
        took = found[0].node_duration
        seconds = took.seconds + took.nanos / 1e9
        self._sharding.observe((cycle.profile, cycle.plugin), found[1].count, seconds)


def read(result: Any, rows: NodeRows, version: str, invalid: Callable[[], object]) -> Verdicts:
    """Return what a replica with a version of plugins answered about *rows*.

    Raises:
        NonsenseError: It cannot be right; this is counted by *invalid*.
    """
    sent, reasons = result.verdicts, []
    for each in result.reasons:
        reasons.append(Reason(each.plugin, each.text, each.unresolvable))  # noqa: PERF401 - a call
    if not sent:
        codes: Codes = np.zeros(rows.count, np.uint16)
    elif len(sent) != 2 * rows.count:
        invalid()
        raise NonsenseError("filter service answers nonsense: verdicts do not match the nodes")
    else:
        codes = np.frombuffer(sent, "<u2")
        if codes.max() > len(reasons):
            invalid()
            raise NonsenseError("filter service answers nonsense: a verdict has no reason")
    record = FilterRecord(
        nodes=0,
        feasible=0,
        seconds=result.duration.seconds + result.duration.nanos / 1e9,
        plugins=read_reports(result.plugins),
        claimants=list(result.claimants),
        version=version,
    )
    verdicts = Verdicts(
        bitmap=rows.bitmap,
        codes=codes,
        reasons=reasons,
        record=record,
        generation=result.generation,
        kept=read_kept(result.cycle_state) if result.cycle_state else NOTHING,
    )
    if result.HasField("group"):
        verdicts.group, verdicts.found = read_group(result.group), dict(result.group.nodes)
    count_verdicts(verdicts, rows)
    return verdicts


def read_group(sent: pb.GroupTrial) -> GroupRecord:
    """Return how the trial placement of a group ended; other namespaces' groups stay unnamed."""
    namespace, ahead = sent.name.partition("/")[0], sent.ahead
    if ahead.partition("/")[0] != namespace:
        ahead = ahead and "in another namespace"
    return GroupRecord(
        plugin=sent.plugin,
        name=sent.name,
        members=sent.members,
        min_count=sent.min_count,
        on_nodes=sent.on_nodes,
        fitting=sent.fitting,
        fits=bool(sent.nodes),
        ahead=ahead,
        topology_key=sent.topology_key,
        domain=sent.domain,
        failing=sent.failing,
        reasons=[
            ReasonNodes(reason=each.reason, nodes=each.nodes, examples=list(each.examples))
            for each in sent.reasons
        ],
        lacking=sent.lacking,
        lacking_free=sent.lacking_free,
        lacking_domain=sent.lacking_domain,
        problem=sent.problem,
        like=sent.like,
        more_nodes=sent.more_nodes,
        timeout=sent.timeout.seconds + sent.timeout.nanos / 1e9,
    )


def count_verdicts(verdicts: Verdicts, rows: NodeRows) -> None:
    """Note in the record how many nodes are feasible, and what each plugin rejected and why."""
    record, reasons = verdicts.record, verdicts.reasons
    record.unknown_nodes = len(rows.by_position) - rows.count and rows.unknown
    record.nodes = rows.count + record.unknown_nodes
    if not reasons:
        record.feasible = rows.count
        return
    counts = np.bincount(verdicts.codes, minlength=len(reasons) + 1).tolist()
    record.feasible = counts[0]
    by_name: dict[str, PluginRecord] = {}
    for plugin in record.plugins:
        by_name[plugin.plugin] = plugin
        plugin.rejected, plugin.reasons = 0, []
    for reason, count in zip(reasons, counts[1:], strict=True):
        rejecting = by_name.get(reason.plugin)
        if rejecting is not None and count:
            rejecting.rejected += count
            rejecting.reasons.append(
                ReasonCount(reason=reason.text, nodes=count, unresolvable=reason.unresolvable)
            )


def join(shards: Sequence[Shard]) -> Shard:
    """Return shards as one."""
    numbers: dict[Reason, int] = {}
    codes_of_each = []
    for verdicts, _ in shards:
        known = [numbers.setdefault(each, len(numbers) + 1) for each in verdicts.reasons]
        codes_of_each.append(np.array([0, *known], np.uint16)[verdicts.codes])
    order = np.argsort(np.concatenate([rows.rows for _, rows in shards]))
    by_position = np.max([rows.by_position for _, rows in shards], axis=0)
    capacity = max(len(rows.mask) for _, rows in shards) - 1
    rows = NodeRows.at(by_position, capacity, shards[0][1].given)
    records = [verdicts.record for verdicts, _ in shards]
    joined = Verdicts(
        bitmap=rows.bitmap,
        codes=np.concatenate(codes_of_each)[order],
        reasons=list(numbers),
        record=FilterRecord(
            nodes=0,
            feasible=0,
            seconds=max(each.seconds for each in records),
            plugins=join_reports([each.plugins for each in records]),
            claimants=list(dict.fromkeys(name for each in records for name in each.claimants)),
            shards=len(shards),
            version=records[0].version,
        ),
        generation=min(verdicts.generation for verdicts, _ in shards),
        kept=join_kept(verdicts.kept for verdicts, _ in shards),
    )
    count_verdicts(joined, rows)
    return joined, rows
