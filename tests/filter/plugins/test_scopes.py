"""Filter plugins keep to the scope that they declare, and judge equal pods alike."""

import re
from functools import partial

from moorage import FilterPlugin, Scope
from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.filters.pod_topology_spread import PodTopologySpread
from moorage.in_tree.shared import DefaultConstraint
from services.filter.plugins import BUILT_INS
from services.filter.plugins.license_seats import LicenseSeats
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from tests.clusters import GPU
from tests.locality import (
    assert_local,
    check_locality,
    check_signing,
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


CACHEABLE = [plugin for plugin in BUILT_INS if plugin.depends_on <= Scope.CLUSTER]
OF_CLUSTER = [plugin for plugin in CACHEABLE if plugin.depends_on is Scope.CLUSTER]
BY_OWNER = DefaultConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
ARGS = {
    PodTopologySpread: PodTopologySpread.Args(
        default_constraints=(BY_OWNER,), defaulting_type="List"
    ),
    NodeGroup: NodeGroup.Args(label="zone"),
    OneNodePerPipelineRun: OneNodePerPipelineRun.Args(
        label_key="app", isolation_strategy="isolateAlways"
    ),
    LicenseSeats: LicenseSeats.Args(label_key="app", other_seats=1, namespaced=True),
}


def test_all_are_cacheable_but_those_that_read_names_or_measurements() -> None:
    others = {plugin.name for plugin in BUILT_INS} - {plugin.name for plugin in CACHEABLE}
    assert others == {"Gang", "MaintenanceWindows", "SafeOverload", "StatefulSetZone"}


def made(kind: type[FilterPlugin]) -> FilterPlugin:
    return kind(ARGS.get(kind))


def test_their_verdicts_are_the_same_for_pods_with_the_same_fields() -> None:
    check_signing(*(partial(made, kind) for kind in CACHEABLE))
    assert all(kind.pod_fields is not None for kind in CACHEABLE)


def test_a_field_that_is_not_named_is_found_out() -> None:
    forgetful = without_each_field(*map(made, OF_CLUSTER))
    assert found_out(forgetful).keys() == forgetful.keys()
