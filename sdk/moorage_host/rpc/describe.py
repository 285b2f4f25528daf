"""Describes plugins, their runs and the replica's nodes for people and for the gateway."""

import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from google.protobuf.struct_pb2 import Struct

from moorage.errors import UnknownNameError
from moorage.execution import PluginRun
from moorage.plugin.hooks import BindPlugin, Plugin, ScorePlugin, extension_points, normalization_of
from moorage.units.quantity import format_quantity
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import Replica
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.convert import (
    kind_to_proto,
    normalization_to_proto,
    scope_to_proto,
    to_duration,
    to_struct,
)


def describe_plugin(registry: Registry, name: str) -> pb.Plugin:
    """Describe the plugin called *name*, with the schema and the defaults of its arguments."""
    registered = registry.get(name)
    if registered is None:
        raise UnknownNameError(f"unknown plugin {name!r}")
    kind = registered.kind
    return pb.Plugin(
        name=name,
        summary=(inspect.getdoc(kind) or "").partition("\n")[0],
        extension_points=extension_points(kind),
        arguments_schema=to_struct(msgspec.json.schema(kind.Args)),
        default_arguments=_defaults(kind.Args),
        origin=registered.origin,
        reads=[kind_to_proto(each) for each in kind.reads],
        depends_on=scope_to_proto(kind.depends_on),
        reads_placements=not issubclass(kind, BindPlugin) and kind.reads_placements,
        normalization=_normalization(kind),
        reads_snapshot=issubclass(kind, BindPlugin) and kind.reads_snapshot,
        pod_fields=None if kind.pod_fields is None else pb.PodFields(paths=kind.pod_fields),
        default_weight=kind.weight if issubclass(kind, ScorePlugin) else 0,
        time_budget=to_duration(kind.time_budget),
        version=registered.version,
        managed_resources=kind.managed_resources,
    )


def describe_plugins(
    registry: Registry, problems: Mapping[str, str] = MappingProxyType({})
) -> list[pb.Plugin]:
    """Describe all plugins, in alphabetical order, with the *problems* of their background work."""
    described = [describe_plugin(registry, name) for name in registry]
    for plugin in described:
        plugin.background_problem = problems.get(plugin.name, "")
    return described


def report_runs(answer: Any, runs: Iterable[PluginRun]) -> float:
    """Add to an answer what plugins did in a cycle, and what they keep for the bind.

    Plugins that failed keep nothing. Returns the seconds that they took to filter or score.
    """
    node_seconds = 0.0
    for run in runs:
        report = answer.plugins.add(
            plugin=run.plugin, failure=run.failure, skipped=run.skipped, note=run.note
        )
        seconds, nanos = divmod(round(run.seconds * 1e9), 1_000_000_000)
        report.duration.seconds, report.duration.nanos = seconds, nanos
        node_seconds += run.node_seconds
        if run.kept and not run.failure:
            for key, kept in run.kept.items():
                answer.cycle_state.add(
                    plugin=run.plugin, key=key, json=kept.json, by_node=kept.by_node
                )
    return node_seconds


def object_counts(replica: Replica) -> dict[str, int]:
    """Return how many objects there are of each additional kind."""
    return {str(kind): count for kind, count in replica.snapshot.objects.counts.items()}


def node_state(replica: Replica, name: str) -> pb.NodeState:
    """Show a node as the plugins see it.

    Raises:
        UnknownNameError: There is no node of this name.
    """
    row = replica.snapshot.row_of(name)
    node = None if row is None else replica.snapshot.node_at(row)
    if node is None:
        raise UnknownNameError(f"unknown node {name!r}")
    return pb.NodeState(
        name=name,
        row=node.row,
        manifest=to_struct(msgspec.to_builtins(node.manifest)),
        pods=sorted(f"{pod.namespace}/{pod.name}" for pod in node.pods),
        requested={key: format_quantity(key, n) for key, n in node.requested.items()},
    )


def _normalization(kind: type[Plugin]) -> pb.Normalization.ValueType:
    return normalization_to_proto(normalization_of(kind) if issubclass(kind, ScorePlugin) else None)


def _defaults(arguments: type[msgspec.Struct]) -> Struct | None:
    try:
        return to_struct(msgspec.to_builtins(arguments()))
    except TypeError:  # some arguments are required
        return None
