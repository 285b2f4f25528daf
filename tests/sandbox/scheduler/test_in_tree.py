"""In-tree plugins as a profile configures them; test_golden.py compares their results."""

import json
from typing import Any

import pytest

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler import parse_configuration
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.in_tree import InTreePlugins
from tests.sandbox.scheduler.support import World, configuration, known_pod
from tools.golden.configurations import RECORDED, text_of
from tools.inprocess.api import Object
from tools.waiting import until


def in_tree(ignored: frozenset[str] = frozenset(), **profile: Any) -> InTreePlugins:
    (read,) = configuration(profiles=[profile]).profiles
    return InTreePlugins(read, ignored)


STARTING = [case for case in json.loads(RECORDED.read_text())["cases"] if "1.37" in case["starts"]]
"""Files with which kube-scheduler starts."""


async def rejection(
    plugins: InTreePlugins, pod: KnownPod, *others: KnownPod, **node: Any
) -> PluginRejection | None:
    cache = SchedulerCache()
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **node.pop("allocatable", {})}
    metadata = {"name": "node", "labels": node.pop("labels", {})}
    cache.set_node({"metadata": metadata, "spec": node, "status": {"allocatable": allocatable}})
    for other in others:
        cache.assume(other, "node")
    return (await plugins.filter(pod.pod, cache.one(cache.nodes["node"]))).rejection(0)


async def test_resources_that_only_an_extender_counts_are_not_checked() -> None:
    pod = known_pod(containers=[{"resources": {"requests": {"x/gpu": "1"}}}])
    ignoring = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["y/other"]}}
    assert await rejection(in_tree(), pod)
    assert await rejection(in_tree(pluginConfig=[ignoring]), pod)
    assert await rejection(in_tree(frozenset({"x/gpu"}), pluginConfig=[ignoring]), pod) is None


def test_profiles_that_kube_scheduler_starts_with_run_here_too() -> None:
    for case in STARTING:
        configuration = parse_configuration(text_of(case))
        for profile in configuration.profiles:
            InTreePlugins(profile, configuration.ignored_resources)


@pytest.mark.parametrize(("weight", "place"), [(1, "idle"), (50, "busy")])
async def test_extender_scores_are_added_to_in_tree_scores(
    world: World, weight: int, place: str
) -> None:
    world.node("idle")
    world.node("busy", taints=[{"key": "busy", "effect": "PreferNoSchedule"}])
    world.extender.on["prioritize"] = lambda _: [{"Host": "busy", "Score": 10}]
    scorer: Object = {"prioritizeVerb": "prioritize", "nodeCacheCapable": True, "weight": weight}
    world.pod("web")
    async with world.scheduler(scorer) as scheduler:
        await until(world.placed("web"))
        decision = scheduler.decisions.get(("default", "web"))
    assert world.place("web") == place
    assert decision
    scores = decision["scores"]
    chosen, runner_up = scores["chosen"], scores["runnerUp"]
    assert chosen["extenders"] == (100 * weight if place == "busy" else 0)
    assert {chosen["node"], runner_up["node"]} == {"idle", "busy"}
    assert (scores["preferred"] or {}).get("node") == ("busy" if place == "idle" else None)
