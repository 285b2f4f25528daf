"""Filter plugins that declare to depend on one node do, and the others do not."""

import pytest

from moorage import FilterPlugin, Scope
from services.filter.plugins import BUILT_INS
from services.filter.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.in_tree.node_resources_fit import NodeResourcesFit
from services.filter.plugins.in_tree.pod_topology_spread import PodTopologySpread
from services.filter.plugins.node_group import NodeGroup
from tests.clusters import GPU
from tests.locality import check_locality, forgetful, local, marked, with_each_field

LOCAL = tuple(
    plugin
    for plugin in BUILT_INS
    if plugin.depends_on <= Scope.MANIFESTS and plugin is not NodeGroup
)
WITH_ARGUMENTS = (
    lambda: NodeGroup(NodeGroup.Args(label="zone")),
    lambda: NodeResourcesFit(NodeResourcesFit.Args(ignored_resources=(GPU,))),
)


def test_all_are_but_those_that_look_at_other_nodes_objects_or_measurements() -> None:
    others = {plugin.name for plugin in BUILT_INS} - local(BUILT_INS)
    assert others == {
        "InterPodAffinity",
        "OneNodePerPipelineRun",
        "PodTopologySpread",
        "SafeOverload",
        "StatefulSetZone",
    }


def test_their_verdicts_depend_on_the_node_and_the_named_fields_of_the_pod_alone() -> None:
    check_locality(*LOCAL, *WITH_ARGUMENTS)
    assert all(plugin.pod_fields is not None for plugin in (*LOCAL, NodeGroup))


@pytest.mark.parametrize(
    ("plugin", "field"),
    with_each_field(*(kind() for kind in LOCAL), NodeGroup(NodeGroup.Args(label="zone"))),
)
def test_a_field_that_is_not_named_is_found_out(plugin: FilterPlugin, field: str) -> None:
    with pytest.raises(AssertionError, match=r"Forgetful depends on more .* of its pod_fields"):
        check_locality(forgetful(plugin, field), most=1000)


@pytest.mark.parametrize("plugin", [InterPodAffinity, PodTopologySpread])
def test_of_others_it_is_found_out(plugin: type[FilterPlugin]) -> None:
    with pytest.raises(
        AssertionError, match=r"Marked depends on more than Scope\.NODE: its verdict of node n\d is"
    ):
        check_locality(marked(plugin), most=1000)
