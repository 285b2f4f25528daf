"""Random examples of what node-local plugins promise."""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import FilterPlugin, Pod, ScorePlugin
from moorage.models import LabelSelector, NodeManifest
from moorage.testing import assert_node_local
from tests.clusters import Cluster, clusters, demanding_pods

LocalPlugin = FilterPlugin | ScorePlugin


@st.composite
def examples(draw: st.DrawFn) -> tuple[Cluster, Pod]:
    """Draw a cluster and a pod that have more to do with each other than by chance."""
    cluster, pod = draw(clusters()), draw(demanding_pods())
    pod = replace(pod, metadata=replace(pod.metadata, labels={"app": "web", **pod.labels}))
    pods = [_fellow(other, pod) if draw(st.booleans()) else other for other in cluster.pods]
    nodes = [_in_zone(node, draw(st.sampled_from("ab"))) for node in cluster.nodes]
    nodes = draw(st.sampled_from((nodes, cluster.nodes)))
    return Cluster(nodes=nodes, pods=pods), _with_wishes_about_fellows(pod)


def check_locality(*plugins: Callable[[], LocalPlugin], most: int = 50) -> None:
    """Assert that the plugins are node-local, in so many random clusters at most.

    As what they say of each node with the others is what they say of it alone, it is the same with
    any others.
    """

    @given(example=examples())
    @settings(
        max_examples=most,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    def check(example: tuple[Cluster, Pod]) -> None:
        cluster, pod = example
        for plugin in plugins:
            assert_node_local(plugin(), pod, *cluster.nodes, pods=cluster.pods)

    check()


def local(built_ins: Sequence[type[LocalPlugin]]) -> set[str]:
    """Return the names of the plugins that call themselves node-local."""
    return {plugin.name for plugin in built_ins if plugin.node_local}


def marked(plugin: type[LocalPlugin]) -> type[LocalPlugin]:
    """Return the same plugin, called node-local."""
    return type("Marked", (plugin,), {"node_local": True})


def _in_zone(node: NodeManifest, zone: str) -> NodeManifest:
    labels = {**node.metadata.labels, "zone": zone}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _fellow(other: Pod, pod: Pod) -> Pod:
    metadata = replace(
        other.metadata, namespace=pod.namespace, labels=pod.labels, deletion_timestamp=""
    )
    return replace(other, metadata=metadata)


def _with_wishes_about_fellows(pod: Pod) -> Pod:
    spec, own = pod.spec, LabelSelector(match_labels=pod.labels)
    spread = tuple(
        replace(each, label_selector=own, max_skew=1, node_taints_policy="Ignore", min_domains=None)
        for each in spec.topology_spread_constraints
    )
    affinity = spec.affinity
    if affinity and affinity.pod_affinity:
        near = tuple(replace(t, label_selector=own) for t in affinity.pod_affinity.required)
        affinity = replace(affinity, pod_affinity=replace(affinity.pod_affinity, required=near))
    return replace(pod, spec=replace(spec, topology_spread_constraints=spread, affinity=affinity))
