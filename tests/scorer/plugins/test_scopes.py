"""Score plugins that declare to depend on a node or manifests do, and the others do not."""

import re

from moorage import Scope
from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.in_tree.scores.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.scores.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.in_tree.scores.pod_topology_spread import PodTopologySpread
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.in_tree.scores.resources import ResourceSpec
from services.scorer.plugins import BUILT_INS
from services.scorer.plugins.node_metadata import NodeMetadata
from services.scorer.plugins.pigeon_holing import PigeonHoling
from tests.clusters import GPU
from tests.locality import (
    assert_local,
    check_locality,
    found_out,
    local,
    marked,
    without_each_field,
)

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
OTHERS = (ImageLocality, InterPodAffinity, PigeonHoling, PodTopologySpread)
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


def test_those_that_declare_too_little_are_found_out() -> None:
    elsewhere = (InterPodAffinity, PigeonHoling, PodTopologySpread)
    on_nodes = {f"{each.name} as NODE": (marked(each), assert_local) for each in OTHERS}
    on_manifests = {
        f"{each.name} as MANIFESTS": (marked(each, Scope.MANIFESTS), assert_local)
        for each in elsewhere
    }
    without = without_each_field(*(kind() for kind in LOCAL))
    messages = found_out(without | on_nodes | on_manifests)
    assert messages.keys() == without.keys() | on_nodes.keys() | on_manifests.keys()
    for name in on_nodes:
        assert re.match(r"Marked depends on more than Scope\.NODE: its score of", messages[name])
    for name in on_manifests:
        assert messages[name].endswith("if the other nodes have no pods")
