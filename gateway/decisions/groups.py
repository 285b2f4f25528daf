"""Says in sentences how the trial placement of a group ended, for every member of it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from aiohttp import web

from gateway.cycle.decision import GroupItem, GroupRecord
from moorage_host.http.callers import may_read

SHOWN = 3
"""Pods, nodes, plugins or reasons that a sentence names, those that count most."""


def group_sentence(group: GroupRecord) -> str:
    """Return the state of a group in one sentence."""
    place = f" in {_label(group)} {group.domain}" if group.domain else ""
    placed = group.on_nodes + group.fitting
    if group.fits:
        return f"group {group.name} fits: {placed} of {group.members} have a node{place}"
    if group.problem and group.members < group.min_count:
        return f"group {group.name} has {group.members} of {group.min_count} pods"
    if group.problem:
        return f"group {group.name} waits: {group.problem}"
    if group.ahead:
        return f"group {group.name} waits for group {group.ahead}, which is ahead of it and fits"
    missing = group.min_count - placed
    head = f"group {group.name} does not fit: {placed} of {group.min_count} placed{place}"
    if missing < 1:
        return f"{head}, but {group.failing} found no node"
    verb = "needs" if missing == 1 else "need"
    if not group.lacking:
        reason = f": {group.reasons[0].reason}" if group.reasons else ""
        return f"{head}; {missing} found no node{reason}"
    return f"{head}; {missing} {verb} {group.lacking}, which {_free(group)}"


def group_evidence(group: GroupRecord, gated: Sequence[str] = ()) -> Iterator[str]:
    """Yield why the newest member that found no node was rejected, and who is *gated*."""
    if gated and group.members < group.min_count:
        more = ", ..." if len(gated) > SHOWN else ""
        shown = ", ".join(gated[:SHOWN])
        yield f"{len(gated)} more {_wait(gated)} for scheduling gates: {shown}{more}"
    if group.failing and group.reasons:
        counted = ", ".join(
            f"{each.nodes} {each.reason} ({', '.join(each.examples)}"
            f"{', ...' if each.nodes > len(each.examples) else ''})"
            for each in group.reasons
        )
        yield f"nodes for {group.failing}: {counted}"


def group_steps(group: GroupRecord, gated: Sequence[str] = (), existing: int = 0) -> list[str]:
    """Return what would help.

    Args:
        group: How its trial placement ended.
        gated: The pods of the group that wait for scheduling gates.
        existing: How many pods of the group exist now.
    """
    if group.members < group.min_count:
        missing = group.min_count - max(group.members + len(gated), existing)
        if missing < 1 and not gated:
            return ["wait: all pods of the group exist by now"]
        steps = ["whoever set the gates has to remove them from spec.schedulingGates"][: len(gated)]
        if missing > 0:
            steps.append(f"{missing} more pod{'s' * (missing > 1)} of the group must be created")
        return steps
    if group.problem:
        return ["change the labels of its pods, or its PodGroup"]
    if group.ahead:
        return [f"group {group.ahead} is placed first, or is passed over once it is not tried"]
    if group.more_nodes:
        nodes = f"{group.more_nodes} more node{'s' * (group.more_nodes > 1)} like {group.like}"
        where = f" in {_label(group)} {group.domain}" if group.domain else ""
        return [f"with {nodes}{where} it starts, or with as much {group.lacking} freed"]
    return []


def shown(item: GroupItem) -> dict[str, Any]:
    """Return a group as lists show it, in sentences too: which group waits for what since when."""
    content: dict[str, Any] = msgspec.to_builtins(item)
    group = item.group
    content["sentence"] = group_sentence(group)
    content["evidence"], content["next"] = list(group_evidence(group)), group_steps(group)
    if group.fits and item.bound >= group.min_count:
        content["sentence"] = f"group {group.name} runs: {item.bound} of {group.members} are bound"
    elif item.released and not item.holding:
        content["sentence"] += (
            f"; it let go of its nodes after {group.timeout:g} s, when {item.bound} were bound"
        )
    return content


def group_route(items: Callable[[], Sequence[GroupItem]]) -> web.RouteDef:
    """Return the route of all groups, the newest first; callers see those of their namespaces."""

    async def groups(request: web.Request) -> web.Response:
        found = [each for each in reversed(items()) if await _may_see(request, each)]
        return web.json_response({"items": list(map(shown, found))})

    return web.get("/groups", groups)


async def _may_see(request: web.Request, item: GroupItem) -> bool:
    return await may_read(request, item.pod.partition("/")[0])


def _wait(gated: Sequence[str]) -> str:
    return "waits" if len(gated) == 1 else "wait"


def _free(group: GroupRecord) -> str:
    if not group.lacking_free:
        return "no node has free"
    nodes = f"{group.lacking_free} node{'s' * (group.lacking_free > 1)}"
    if group.lacking_domain:
        return f"is free on {nodes} of {_label(group)} {group.lacking_domain} only"
    return f"is free on {nodes} only"


def _label(group: GroupRecord) -> str:
    """Return the topology label as a word: "rack" for "example.com/rack"."""
    return group.topology_key.rpartition("/")[2]
