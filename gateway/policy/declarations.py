"""What holds for a plugin on all replicas, which may run different versions of it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from moorage.plugin.pod_fields import union
from moorage_host.policy import PluginInfo


def common_declarations(replicas: Iterable[Sequence[PluginInfo]]) -> list[PluginInfo]:
    """Return the plugins of all replicas, each with what every replica that has it declares.

    Permissions need every replica; requirements, such as objects to read, need one. A time budget
    is the longest and a weight the least, so that it does not matter who greeted last.
    """
    versions: dict[str, list[PluginInfo]] = {}
    for infos in replicas:
        for info in infos:
            versions.setdefault(info.name, []).append(info)
    return [reduce(_common, each) for each in versions.values()]


def _resources(one: PluginInfo, last: PluginInfo) -> tuple[str, ...]:
    """Return the resources of both, () where one of them concerns all pods."""
    both = one.managed_resources, last.managed_resources
    return tuple(sorted({*both[0], *both[1]})) if all(both) else ()


def _common(one: PluginInfo, last: PluginInfo) -> PluginInfo:
    alike = {
        key: last.default_args[key]
        for key in last.default_args
        if one.default_args.get(key) == last.default_args[key]
    }
    if one == last:
        return last
    return replace(
        last,
        points=one.points | last.points,
        args_schema=last.args_schema if one.args_schema == last.args_schema else None,
        reads=tuple(dict.fromkeys((*one.reads, *last.reads))),
        depends_on=max(one.depends_on, last.depends_on),
        pod_fields=union((one.pod_fields, last.pod_fields)),
        normalization=last.normalization if one.normalization is last.normalization else None,
        reads_snapshot=one.reads_snapshot or last.reads_snapshot,
        reads_placements=one.reads_placements or last.reads_placements,
        default_args=alike,
        weight=min(one.weight, last.weight),
        time_budget=max(one.time_budget, last.time_budget),
        origin=max(one.origin, last.origin),
        managed_resources=_resources(one, last),
    )
