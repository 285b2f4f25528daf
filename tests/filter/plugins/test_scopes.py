"""Filter plugins that declare to depend on one node do, and the others do not."""

import re

from moorage import Scope
from services.filter.plugins import BUILT_INS
from services.filter.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.in_tree.node_resources_fit import NodeResourcesFit
from services.filter.plugins.in_tree.pod_topology_spread import PodTopologySpread
from services.filter.plugins.node_group import NodeGroup
from tests.clusters import GPU
from tests.locality import (
    assert_local,
    check_locality,
    found_out,
    local,
    marked,
    without_each_field,
)

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
        "Gang",
        "InterPodAffinity",
        "LicenseSeats",
        "MaintenanceWindows",
        "OneNodePerPipelineRun",
        "PodTopologySpread",
        "SafeOverload",
        "StatefulSetZone",
    }


def test_their_verdicts_depend_on_the_node_and_the_named_fields_of_the_pod_alone() -> None:
    check_locality(*LOCAL, *WITH_ARGUMENTS)
    assert all(plugin.pod_fields is not None for plugin in (*LOCAL, NodeGroup))


def test_those_that_declare_too_little_are_found_out() -> None:
    others = {
        each.name: (marked(each), assert_local) for each in (InterPodAffinity, PodTopologySpread)
    }
    in_zones = NodeGroup(NodeGroup.Args(label="zone"))
    without = without_each_field(*(kind() for kind in LOCAL), in_zones)
    messages = found_out(without | others)
    assert messages.keys() == without.keys() | others.keys()
    for name in others:
        assert re.match(r"Marked depends on more than Scope\.NODE: its verdict", messages[name])
