"""The stand-in decides as a real kube-scheduler did on the golden clusters.

With the exceptions of tests/scorer/test_golden_scores.py, whose scores are not compared here.
"""

import functools
import json
import random
from copy import deepcopy

import msgspec
import pytest

from moorage import Pod
from moorage.models.decoding import encode
from moorage_host.kube_scheduler import KubeSchedulerConfiguration, parse_configuration
from moorage_host.kube_scheduler.attempt import SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.cycle import SchedulingCycle
from moorage_host.kube_scheduler.extenders import Extenders
from moorage_host.kube_scheduler.in_tree import InTreePlugins
from moorage_host.kube_scheduler.preemption import Preemption, PreemptionError
from tests.golden import VERSIONS, Filtered, Object, Scored, filtered, objects, scored
from tools.golden.scheduler import UNMET
from tools.golden.scheduler import configuration as golden_profiles


@functools.cache
def configuration() -> KubeSchedulerConfiguration:
    return parse_configuration(json.dumps(golden_profiles()))


@functools.cache
def cluster(version: str, name: str) -> SchedulerCache:
    cache, (nodes, pods) = SchedulerCache(), objects(version, name)
    for node in nodes:
        cache.set_node(deepcopy(node))
    for pod in pods:
        cache.set_pod(KnownPod(pod))
    return cache


async def attempt(
    case: Scored | Filtered, profile: str, pod: Object
) -> tuple[SchedulingAttempt, str | None]:
    """Schedule a pod as the scheduler does; return the node, None if there is none."""
    cache, rng = cluster(case.version, case.cluster), random.Random(1)
    profiles = {profile.scheduler_name: profile for profile in configuration().profiles}
    plugins = InTreePlugins(profiles[profile], frozenset())
    tried = SchedulingAttempt(pod=KnownPod(pod), nodes=len(cache.nodes))
    cycle = SchedulingCycle(configuration(), cache, Extenders([], cache), rng)
    node = await cycle.choose(tried, profiles[profile], plugins)
    if node is None:
        with pytest.raises(PreemptionError) as caught:
            await Preemption(cache, Extenders([], cache), rng).plan(tried, plugins)
        tried.aftermath = f"preemption: {caught.value}"
    return tried, node


def document(pod: Pod) -> Object:
    decoded: Object = msgspec.json.decode(encode(pod))
    return decoded


def feasible(tried: SchedulingAttempt, node: str | None) -> list[str]:
    return sorted(tried.names) or ([node] if node else [])


@pytest.mark.parametrize("version", VERSIONS)
async def test_scores_and_reasons_are_those_of_kube_scheduler(
    version: str, subtests: pytest.Subtests
) -> None:
    for case in scored(version):
        with subtests.test(str(case)):
            tried, node = await attempt(case, case.profile, document(case.pod))
            assert feasible(tried, node) == sorted(case.feasible)
            if case.message:
                assert tried.message == case.message
            given = {
                each.plugin: dict(zip(tried.names, each.normalized.tolist(), strict=True))
                for each in tried.in_tree
            }
            exempt = set()
            if case.pod.spec.resources.requests:
                exempt.add("NodeResourcesFit")
            if case.version == "1.36" and any(volume.image for volume in case.pod.spec.volumes):
                exempt.add("ImageLocality")
            for plugin in case.scores.keys() - exempt:
                assert given[plugin] == case.scores[plugin]
            assert given.keys() == case.scores.keys()
            if tried.names and not exempt:
                totals = {name: sum(s[name] for s in case.scores.values()) for name in tried.names}
                assert totals[str(node)] == max(totals.values())


@pytest.mark.parametrize("version", VERSIONS)
async def test_rejections_are_those_of_kube_scheduler(
    version: str, subtests: pytest.Subtests
) -> None:
    for case in filtered(version):
        with subtests.test(str(case)):
            tried, node = await attempt(case, case.plugin, document(case.pod))
            assert feasible(tried, node) == sorted(case.feasible)
            assert (case.alone is None) == (node is not None)
            if case.alone:
                assert tried.message == case.alone
            unmet = document(case.pod)
            resources = unmet["spec"]["containers"][0].setdefault("resources", {})
            resources["requests"] = {**resources.get("requests", {}), UNMET: "1"}
            tried, node = await attempt(case, case.plugin, unmet)
            assert node is None
            assert tried.message == case.filled
