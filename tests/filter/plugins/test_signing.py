"""Filter plugins that say that they judge equal pods alike do so."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.models import PodStatus
from moorage.testing import run_filter
from services.filter.plugins import BUILT_INS
from services.filter.plugins.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from tests import clusters

SIGNING = [plugin for plugin in BUILT_INS if plugin.signs_pods or plugin.node_local]
ARGS = {
    NodeGroup: NodeGroup.Args(label="zone"),
    OneNodePerPipelineRun: OneNodePerPipelineRun.Args(
        label_key="app", isolation_strategy="isolateAlways"
    ),
}


def test_the_built_in_plugins_sign_but_those_that_look_at_names_or_measurements() -> None:
    others = {plugin.name for plugin in BUILT_INS} - {plugin.name for plugin in SIGNING}
    assert others == {"SafeOverload", "StatefulSetZone"}


@given(
    cluster=clusters.clusters(),
    pod=clusters.demanding_pods(),
    name=st.sampled_from(("web-7", "p0", "zzz")),
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_their_verdicts_are_the_same_for_pods_of_another_name(
    cluster: clusters.Cluster, pod: Pod, name: str
) -> None:
    own: dict[str, Any] = {"name": name, "uid": f"other-{name}"}
    metadata = replace(pod.metadata, **own, creation_timestamp="2026-11-22T00:00:00Z")
    status = PodStatus(phase="Pending", nominated_node_name="n0")
    equal = replace(pod, metadata=metadata, status=status)
    for kind in SIGNING:
        plugin = kind(ARGS.get(kind))
        one, other = [
            run_filter(plugin, each, *cluster.nodes, pods=cluster.pods) for each in (pod, equal)
        ]
        assert one == other, kind.name


def test_a_plugin_signs_only_if_it_says_so_itself() -> None:
    class Own(FilterPlugin):
        def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
            return None

    class Derived(InterPodAffinity):
        """May look at the name."""

    assert not Own.signs_pods
    assert InterPodAffinity.signs_pods
    assert not Derived.signs_pods
