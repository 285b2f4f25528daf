"""Random examples on which plugins must keep to the scope that they declare."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import FilterPlugin, Pod, Scope, ScorePlugin
from moorage.models import (
    Affinity,
    Container,
    ContainerPort,
    ImageSource,
    LabelSelector,
    NodeAffinity,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    PodSpec,
    Requirement,
    Resources,
    TopologySpreadConstraint,
    Volume,
)
from moorage.testing import assert_node_local, run_filter
from moorage.testing.locality import equal_pods
from moorage.testing.unlike_pods import unlike_pods
from tests.clusters import Cluster, clusters, demanding_pods

IN_A = Requirement(key="zone", operator="In", values=("a",))
IN_ZONE_A = NodeAffinity(
    required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(IN_A,)),))
)
OVER_ZONES = TopologySpreadConstraint(topology_key="zone", node_taints_policy="Honor")
IMAGE = Volume(name="image", image=ImageSource(reference="app:v1"))
SMALL = Container(name="c", resources=Resources(requests={"cpu": "100m", "memory": "1Gi"}))
SIDECAR = Container(
    name="sidecar",
    resources=Resources(requests={"cpu": "500m"}),
    ports=(ContainerPort(host_port=80),),
    restart_policy="Always",
)

LocalPlugin = FilterPlugin | ScorePlugin
Each = TypeVar("Each", FilterPlugin, ScorePlugin)


@st.composite
def examples(draw: st.DrawFn) -> tuple[Cluster, Pod, Pod]:
    """Draw a cluster and a pod that have more to do with each other than by chance, and another."""
    cluster, pod = draw(clusters()), draw(demanding_pods())
    pod = replace(pod, metadata=replace(pod.metadata, labels={"app": "web", **pod.labels}))
    pod = draw(st.sampled_from((pod, _particular(pod, None), _particular(pod, IN_ZONE_A))))
    pods = [_fellow(other, pod) if draw(st.booleans()) else other for other in cluster.pods]
    nodes = [_in_zone(node, draw(st.sampled_from("ab"))) for node in cluster.nodes]
    nodes = draw(st.sampled_from((nodes, cluster.nodes)))
    other = draw(demanding_pods())
    return Cluster(nodes=nodes, pods=pods), _with_wishes_about_fellows(pod), other


def check_locality(*plugins: Callable[[], LocalPlugin], most: int = 50) -> None:
    """Assert that the plugins are node-local, in so many random clusters at most.

    As what they say of each node with the others is what they say of it alone, it is the same with
    any others.
    """

    def holds(cluster: Cluster, pod: Pod, other: Pod) -> None:
        for plugin in plugins:
            assert_node_local(plugin(), pod, *cluster.nodes, pods=cluster.pods, unlike=[other])

    in_random_clusters(holds, most)


def check_signing(*plugins: Callable[[], FilterPlugin], most: int = 50) -> None:
    """Assert that the plugins judge equal pods alike, in so many random clusters at most."""

    def holds(cluster: Cluster, pod: Pod, other: Pod) -> None:
        for make in plugins:
            plugin = make()
            said = run_filter(plugin, pod, *cluster.nodes, pods=cluster.pods)
            for equal in equal_pods(plugin, pod, (pod, other, *unlike_pods())):
                again = run_filter(plugin, equal, *cluster.nodes, pods=cluster.pods)
                assert said == again, plugin.name

    in_random_clusters(holds, most)


def in_random_clusters(holds: Callable[[Cluster, Pod, Pod], None], most: int) -> None:
    """Try something in so many random clusters at most, with a pod to place and another."""

    @given(example=examples())
    @settings(
        max_examples=most,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    def check(example: tuple[Cluster, Pod, Pod]) -> None:
        holds(*example)

    check()


def local(built_ins: Sequence[type[LocalPlugin]]) -> set[str]:
    """Return the names of the plugins that depend on a node or manifests."""
    return {plugin.name for plugin in built_ins if plugin.depends_on <= Scope.MANIFESTS}


def marked(plugin: type[LocalPlugin], scope: Scope = Scope.NODE) -> type[LocalPlugin]:
    """Return the same plugin, which declares another scope."""
    return type("Marked", (plugin,), {"depends_on": scope})


def forgetful(plugin: Each, field: str) -> Callable[[], Each]:
    """Return what makes the same plugin, which does not declare one of the fields it reads."""
    kind = type(plugin)
    declared = {"depends_on": kind.depends_on, "pod_fields": without(kind, field)}
    forgetful: type[Each] = type("Forgetful", (kind,), declared)
    return lambda: forgetful(plugin.args)


def without(kind: type[LocalPlugin], field: str) -> tuple[str, ...]:
    """Return the fields that a plugin looks at but for one."""
    return tuple(each for each in kind.pod_fields or () if each != field)


def with_each_field(*plugins: LocalPlugin) -> list[Any]:
    """Return the plugins with each of the fields that they look at, as parameters of a test."""
    return [
        pytest.param(plugin, field, id=f"{plugin.name}-{field}")
        for plugin in plugins
        for field in type(plugin).pod_fields or ()
    ]


def _in_zone(node: NodeManifest, zone: str) -> NodeManifest:
    labels = {**node.metadata.labels, "zone": zone}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _fellow(other: Pod, pod: Pod) -> Pod:
    metadata = replace(
        other.metadata, namespace=pod.namespace, labels=pod.labels, deletion_timestamp=""
    )
    volumes = pod.spec.volumes or other.spec.volumes
    return replace(other, metadata=metadata, spec=replace(other.spec, volumes=volumes))


def _particular(pod: Pod, node_affinity: NodeAffinity | None) -> Pod:
    """Return a small pod with a sidecar, to be spread over the nodes that it may run on."""
    spec = PodSpec(
        scheduler_name=pod.spec.scheduler_name,
        containers=(SMALL,),
        init_containers=(SIDECAR,),
        affinity=replace(pod.spec.affinity or Affinity(), node_affinity=node_affinity),
        tolerations=pod.spec.tolerations,
        topology_spread_constraints=(OVER_ZONES,),
        volumes=(*pod.spec.volumes, IMAGE),
    )
    return replace(pod, spec=spec)


def _with_wishes_about_fellows(pod: Pod) -> Pod:
    spec, own = pod.spec, LabelSelector(match_labels=pod.labels)
    spread = tuple(
        replace(each, label_selector=own, max_skew=1, min_domains=None)
        for each in spec.topology_spread_constraints
    )
    affinity = spec.affinity
    if affinity and affinity.pod_affinity:
        near = tuple(replace(t, label_selector=own) for t in affinity.pod_affinity.required)
        affinity = replace(affinity, pod_affinity=replace(affinity.pod_affinity, required=near))
    return replace(pod, spec=replace(spec, topology_spread_constraints=spread, affinity=affinity))
