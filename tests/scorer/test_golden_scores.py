"""Our mirrors of in-tree score plugins give the numbers that real kube-schedulers gave.

With two exceptions, on purpose: NodeResourcesFit overlooks what the pod to be placed requests as a
whole (spec.resources) when it scores. It counts that everywhere else, as we do. And ImageLocality
follows 1.37, where volumes that are images count as containers do (`tests/test_recorded_versions`).
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from msgspec.structs import replace

from moorage import Pod, ScorePlugin
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.models import Resources
from moorage_host.plugins.ranking import run_scores
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins import BUILT_INS
from tests.golden import VERSIONS, Object, cluster, scored

FIT = "NodeResourcesFit"
STRATEGIES: Mapping[str, type[ScorePlugin]] = {
    "LeastAllocated": NodeResourcesLeastAllocated,
    "MostAllocated": NodeResourcesMostAllocated,
    "RequestedToCapacityRatio": RequestedToCapacityRatio,
}
"""Ours for the scoring strategies of NodeResourcesFit."""

SAME = {
    kind.name: kind
    for kind in BUILT_INS
    if kind.name
    in {
        "TaintToleration",
        "NodeAffinity",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    }
}


def plugins(arguments: Mapping[str, Object]) -> Iterator[tuple[str, ScorePlugin]]:
    """Yield our plugins by the names of kube-scheduler's."""
    for name, kind in SAME.items():
        yield name, kind(check_arguments(arguments.get(name, {}), kind.Args, name))
    strategy = arguments.get(FIT, {}).get("scoringStrategy", {})
    ours = STRATEGIES[strategy.get("type", "LeastAllocated")]
    args = {key: strategy[key] for key in ("resources",) if key in strategy}
    args |= strategy.get("requestedToCapacityRatio", {})
    yield FIT, ours(check_arguments(args, ours.Args, FIT))


def without_own_requests(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, resources=Resources()))


@pytest.mark.parametrize("version", VERSIONS)
async def test_scores_are_those_of_kube_scheduler(version: str, subtests: pytest.Subtests) -> None:
    for case in filter(lambda case: case.scores, scored(version)):
        with subtests.test(str(case)):
            nodes = cluster(case.version, case.cluster)
            nodes = nodes.where(np.isin(nodes.names, case.feasible))
            by_name = dict(plugins(case.arguments))
            profile = Profile(
                name=case.profile,
                plugins=tuple(EnabledPlugin(plugin=plugin) for plugin in by_name.values()),
            )
            run = await run_scores(profile, case.pod, nodes, Supervisor())
            given = {opinion.plugin: opinion.normalized for opinion in run.scores}
            if case.pod.spec.resources.requests:
                overlooked = await run_scores(
                    profile, without_own_requests(case.pod), nodes, Supervisor()
                )
                fit = by_name[FIT].name
                given[fit] = next(o.normalized for o in overlooked.scores if o.plugin == fit)
            expected = dict(case.scores)
            if case.version == "1.36" and any(volume.image for volume in case.pod.spec.volumes):
                del given["ImageLocality"], expected["ImageLocality"]
            assert {
                theirs: dict(zip(nodes.names, given[plugin.name].tolist(), strict=True))
                for theirs, plugin in by_name.items()
                if plugin.name in given
            } == expected


def test_every_plugin_has_made_a_difference_somewhere() -> None:
    telling = {
        (name, case.profile)
        for case in scored()
        for name, scores in case.scores.items()
        if len(set(scores.values())) > 1
    }
    assert {name for name, _ in telling} == {*SAME, FIT}
    assert {profile for name, profile in telling if name == FIT} == {
        "default",
        "most",
        "ratio",
        "least",
    }
