"""Turns what replicas send into decision records, and the versions of their plugins."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from gateway.decisions.records import (
    BindPluginRecord,
    FilterRecord,
    NodeScoreRecord,
    PluginRecord,
    PluginScoreRecord,
    ReasonCount,
    ScoreRecord,
)
from moorage.plugin.cycle_state import KeptValue
from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import from_duration

DIGITS = 16
"""Hexadecimal digits of a version; decisions show them."""


def digest_of(plugins: Iterable[pb.Plugin]) -> str:
    """Return a digest of the versions of plugins: replicas with equal ones give equal answers."""
    versions = sorted(f"{plugin.name}={plugin.version}" for plugin in plugins)
    return sha256("\n".join(versions).encode()).hexdigest()[:DIGITS]


def versions_of(plugins: Iterable[pb.Plugin]) -> dict[str, str]:
    """Return the version of each plugin, by its name."""
    return {plugin.name: plugin.version[:DIGITS] for plugin in plugins}


def filter_record(
    result: filter_pb2.FilterResult,
    counts: Sequence[int],
    unknown: int,
    shards: int,
    version: str,
) -> FilterRecord:
    """Note the verdicts by plugin and reason; *counts* begins with the feasible nodes."""
    plugins = plugin_records(result.plugins)
    by_name = {plugin.plugin: plugin for plugin in plugins}
    for reason, count in zip(result.reasons, counts[1:], strict=True):
        plugin = by_name.get(reason.plugin)
        if plugin is not None and count:
            plugin.rejected += count
            plugin.reasons.append(
                ReasonCount(reason=reason.text, nodes=count, unresolvable=reason.unresolvable)
            )
    return FilterRecord(
        nodes=sum(counts) + unknown,
        feasible=counts[0],
        unknown_nodes=unknown,
        seconds=from_duration(result.duration),
        plugins=plugins,
        claimants=list(result.claimants),
        shards=shards,
        version=version,
        cached_nodes=result.cached_nodes,
        cached_from=result.cached_from,
    )


def score_record(
    result: scorer_pb2.ScoreResult, nodes: int, shards: int, version: str
) -> ScoreRecord:
    """Note the best nodes with what their totals are made of."""
    return ScoreRecord(
        nodes=nodes,
        seconds=from_duration(result.duration),
        plugins=plugin_records(result.plugins),
        top=[node_score(node) for node in result.top],
        shards=shards,
        version=version,
        cached_nodes=result.cached_nodes,
        cached_from=result.cached_from,
    )


def kept_values(values: Iterable[pb.CycleValue]) -> dict[str, KeptValue]:
    """Return by key what plugins keep for the bind; of several values the last one counts."""
    found: dict[str, KeptValue] = {}
    for value in values:
        kept = found.setdefault(value.key, KeptValue())
        kept.json = value.json or kept.json
        kept.by_node.update(value.by_node)
    return found


def plugin_records(reports: Iterable[pb.PluginReport]) -> list[PluginRecord]:
    """Note what plugins did."""
    return [
        PluginRecord(
            plugin=report.plugin,
            seconds=from_duration(report.duration),
            skipped=report.skipped,
            failure=report.failure,
            note=report.note,
        )
        for report in reports
    ]


def bind_plugin_records(reports: Iterable[binder_pb2.BindPluginReport]) -> list[BindPluginRecord]:
    """Note what plugins did for a bind."""
    return [
        BindPluginRecord(
            plugin=report.plugin,
            point=report.point,
            result=report.result,
            seconds=from_duration(report.duration),
        )
        for report in reports
    ]


def node_score(node: scorer_pb2.NodeScore) -> NodeScoreRecord:
    """Note a node's total with what it is made of."""
    return NodeScoreRecord(
        node=node.node,
        total=node.total,
        plugins=[
            PluginScoreRecord(
                plugin=score.plugin,
                raw=score.raw,
                normalized=score.normalized,
                weight=score.weight,
            )
            for score in node.plugins
        ],
    )
