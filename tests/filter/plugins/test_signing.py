"""Filter plugins that say that they judge equal pods alike do so."""

from functools import partial

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.in_tree.topology_spread import DefaultConstraint
from services.filter.plugins import BUILT_INS
from services.filter.plugins.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from services.filter.plugins.pod_topology_spread import PodTopologySpread
from tests.locality import check_signing, forgetful, with_each_field

SIGNING = [plugin for plugin in BUILT_INS if plugin.signs_pods or plugin.node_local]
ONLY_SIGNING = [plugin for plugin in SIGNING if not plugin.node_local]
BY_OWNER = DefaultConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
ARGS = {
    PodTopologySpread: PodTopologySpread.Args(
        default_constraints=(BY_OWNER,), defaulting_type="List"
    ),
    NodeGroup: NodeGroup.Args(label="zone"),
    OneNodePerPipelineRun: OneNodePerPipelineRun.Args(
        label_key="app", isolation_strategy="isolateAlways"
    ),
}


def test_the_built_in_plugins_sign_but_those_that_look_at_names_or_measurements() -> None:
    others = {plugin.name for plugin in BUILT_INS} - {plugin.name for plugin in SIGNING}
    assert others == {"SafeOverload", "StatefulSetZone"}


def made(kind: type[FilterPlugin]) -> FilterPlugin:
    return kind(ARGS.get(kind))


def test_their_verdicts_are_the_same_for_pods_with_the_same_fields() -> None:
    check_signing(*(partial(made, kind) for kind in SIGNING))
    assert all(kind.pod_fields is not None for kind in SIGNING)


@pytest.mark.parametrize(("plugin", "field"), with_each_field(*map(made, ONLY_SIGNING)))
def test_a_field_that_is_not_named_is_found_out(plugin: FilterPlugin, field: str) -> None:
    with pytest.raises(AssertionError, match="Forgetful"):
        check_signing(forgetful(plugin, field), most=1000)


def test_a_plugin_signs_only_if_it_says_so_itself() -> None:
    class Own(FilterPlugin):
        def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
            return None

    class Derived(InterPodAffinity):
        """May look at the name."""

    assert not Own.signs_pods
    assert InterPodAffinity.signs_pods
    assert not Derived.signs_pods
