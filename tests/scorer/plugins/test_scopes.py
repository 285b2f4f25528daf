"""Score plugins that declare to depend on a node or manifests do, and the others do not."""

import pytest

from moorage import Scope, ScorePlugin
from services.scorer.plugins import BUILT_INS
from services.scorer.plugins.in_tree.image_locality import ImageLocality
from services.scorer.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from services.scorer.plugins.in_tree.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from services.scorer.plugins.in_tree.node_resources_least_allocated import (
    NodeResourcesLeastAllocated,
)
from services.scorer.plugins.in_tree.node_resources_most_allocated import NodeResourcesMostAllocated
from services.scorer.plugins.in_tree.pod_topology_spread import PodTopologySpread
from services.scorer.plugins.in_tree.requested_to_capacity_ratio import RequestedToCapacityRatio
from services.scorer.plugins.in_tree.resources import ResourceSpec
from services.scorer.plugins.node_metadata import NodeMetadata
from services.scorer.plugins.pigeon_holing import PigeonHoling
from tests.clusters import GPU
from tests.locality import check_locality, forgetful, local, marked, with_each_field

RESOURCES = (
    ResourceSpec(name="cpu", weight=3),
    ResourceSpec(name="memory"),
    ResourceSpec(name=GPU, weight=2),
)
BY_RESOURCES = (
    NodeResourcesBalancedAllocation,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
OLDER = NodeResourcesBalancedAllocation.Args(form="older", resources=RESOURCES)
SIZE = NodeMetadata.Args(metadata_key="size", metadata_source="Label")

LOCAL = tuple(
    plugin
    for plugin in BUILT_INS
    if plugin.depends_on <= Scope.MANIFESTS and plugin is not NodeMetadata
)
WITH_ARGUMENTS = (
    lambda: NodeMetadata(SIZE),
    lambda: NodeResourcesBalancedAllocation(OLDER),
    *((lambda kind=kind: kind(kind.Args(resources=RESOURCES))) for kind in BY_RESOURCES),
)


def test_all_are_but_those_that_look_at_pods_on_other_nodes_or_measurements() -> None:
    comparing = {plugin for plugin in BUILT_INS if plugin.depends_on is Scope.MANIFESTS}
    assert comparing == {ImageLocality}
    assert local(BUILT_INS) == {
        "Equal",
        "ImageLocality",
        "ImageScore",
        "NodeAffinity",
        "NodeMetadata",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated",
        "RequestedToCapacityRatio",
        "TaintToleration",
    }


def test_their_scores_depend_on_the_node_and_the_named_fields_of_the_pod_alone() -> None:
    check_locality(*LOCAL, *WITH_ARGUMENTS)
    assert all(plugin.pod_fields is not None for plugin in (*LOCAL, NodeMetadata))


@pytest.mark.parametrize(("plugin", "field"), with_each_field(*(kind() for kind in LOCAL)))
def test_a_field_that_is_not_named_is_found_out(plugin: ScorePlugin, field: str) -> None:
    with pytest.raises(AssertionError, match=r"Forgetful depends on more .* of its pod_fields"):
        check_locality(forgetful(plugin, field), most=1000)


@pytest.mark.parametrize(
    "plugin", [ImageLocality, InterPodAffinity, PigeonHoling, PodTopologySpread]
)
def test_of_others_it_is_found_out(plugin: type[ScorePlugin]) -> None:
    with pytest.raises(
        AssertionError, match=r"Marked depends on more than Scope\.NODE: its score of node n\d is"
    ):
        check_locality(marked(plugin), most=1000)


@pytest.mark.parametrize("plugin", [InterPodAffinity, PigeonHoling, PodTopologySpread])
def test_of_those_that_look_at_pods_elsewhere_it_is_found_out(plugin: type[ScorePlugin]) -> None:
    with pytest.raises(
        AssertionError, match=r"Marked depends on more .* if the other nodes have no pods"
    ):
        check_locality(marked(plugin, Scope.MANIFESTS), most=5000)
