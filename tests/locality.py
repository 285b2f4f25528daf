"""Random examples on which plugins must keep to the scope that they declare."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import FilterPlugin, Pod, Scope, ScorePlugin
from moorage.models import (
    Affinity,
    AwsDiskSource,
    Container,
    ContainerImage,
    ContainerPort,
    GceDiskSource,
    ImageSource,
    IscsiSource,
    LabelSelector,
    NodeAffinitySpec,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    RbdSource,
    Requirement,
    Resources,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from moorage.testing import assert_node_local, make_node, make_nodes, make_pod
from moorage.testing.given import NO_OBJECTS, read_by
from moorage.testing.harness import complete, raw_scores, started, verdicts
from moorage.testing.locality import equal_pods, unlike_pods
from tests.clusters import Cluster, clusters, demanding_pods
from tests.conftest import EXAMPLES

IN_A = Requirement(key="zone", operator="In", values=("a",))
IN_ZONE_A = NodeAffinitySpec(
    required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(IN_A,)),))
)
OVER_ZONES = TopologySpreadConstraint(topology_key="zone", node_taints_policy="Honor")
IMAGE = Volume(name="image", image=ImageSource(reference="app:v1"))
SMALL = Container(name="c", resources=Resources(requests={"cpu": "100m", "memory": "1Gi"}))
APP = replace(SMALL, image="app:v1")
SIDECAR = Container(
    name="sidecar",
    resources=Resources(requests={"cpu": "500m"}),
    ports=(ContainerPort(host_port=80),),
    restart_policy="Always",
)

LocalPlugin = FilterPlugin | ScorePlugin
Check = Callable[[LocalPlugin, Cluster, Pod, Pod], None]

DISKS = (
    Volume(name="d", gce_persistent_disk=GceDiskSource(pd_name="d")),
    Volume(name="d", aws_elastic_block_store=AwsDiskSource(volume_id="d")),
    Volume(name="d", iscsi=IscsiSource(iqn="d")),
    Volume(name="d", rbd=RbdSource(monitors=("m",), pool="p", image="d")),
)


def telling() -> Iterator[tuple[Cluster, Pod, Pod]]:
    """Yield examples of what random ones have seldom."""
    yield from tight_examples()
    yield from tainted_examples()
    zones = {"na": "a", "nb": "b", "nc": "a"}
    a, b, c = (make_node(name, labels={"zone": zone}) for name, zone in zones.items())
    image = ContainerImage(names=("app:v1",), size_bytes=900 << 20)
    a = replace(a, status=replace(a.status, images=(image,)))
    labels, other = {"app": "web"}, make_pod("other")
    near = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key="zone")
    wish = WeightedPodAffinityTerm(weight=9, pod_affinity_term=near)
    affinity = Affinity(pod_affinity=PodAffinity(required=(near,), preferred=(wish,)))
    there = [make_pod(f"p{i}", uid=f"u{i}", labels=labels, node="na") for i in range(3)]
    for unsatisfiable in ("ScheduleAnyway", "DoNotSchedule"):
        pod = make_pod("web", labels=labels, affinity=affinity)
        spread = replace(
            OVER_ZONES, label_selector=near.label_selector, when_unsatisfiable=unsatisfiable
        )
        spec = replace(pod.spec, containers=(APP,), topology_spread_constraints=(spread,))
        yield Cluster(nodes=[a, b, c], pods=there), replace(pod, spec=spec), other
    for disk in DISKS:
        user = make_pod("user", uid="u", volumes=(disk,), node="na")
        yield Cluster(nodes=[a, b], pods=[user]), make_pod("web", volumes=(disk,)), other
    for container in (SIDECAR, replace(SIDECAR, restart_policy=""), APP):
        pod = make_pod("web")
        pod = replace(pod, spec=replace(pod.spec, init_containers=(container,)))
        user = make_pod("user", uid="u", node="na")
        user = replace(user, spec=replace(user.spec, containers=(SIDECAR,)))
        yield Cluster(nodes=[a, b], pods=[user]), pod, other


def tight_examples() -> Iterator[tuple[Cluster, Pod, Pod]]:
    """Yield pods that each part of their requests makes just too large for a node."""
    part = Resources(requests={"cpu": "1"})
    sidecar = Container(name="s", resources=part, restart_policy="Always")
    parts = PodSpec(
        containers=(replace(SMALL, resources=part),),
        init_containers=(sidecar,),
        overhead={"cpu": "1"},
    )
    whole = replace(parts, resources=Resources(requests={"cpu": "2"}))
    first = replace(parts, init_containers=(replace(sidecar, restart_policy=""), sidecar))
    nodes = []
    for name, cpu in (("na", "2500m"), ("nb", "3"), ("nc", "8")):
        node = make_node(name)
        amounts = {"cpu": cpu, "memory": "8Gi", "pods": "9"}
        nodes.append(replace(node, status=replace(node.status, allocatable=amounts)))
    pod = make_pod("large")
    for spec in (parts, whole, first):
        yield Cluster(nodes=nodes, pods=[]), replace(pod, spec=spec), make_pod("other")


def tainted_examples() -> Iterator[tuple[Cluster, Pod, Pod]]:
    """Yield a pod that tolerates what nodes have, of a group, spread over them, and kept apart."""
    zone = {"zone": "a"}
    there = Toleration(operator="Exists")
    taints = [Taint(key="gpu", effect=effect) for effect in ("NoSchedule", "PreferNoSchedule")]
    nodes = [
        make_node("na", labels=zone, taints=taints[:1]),
        make_node("nb", labels={"zone": "b"}, taints=taints[1:]),
        make_node("nc", labels={"zone": "c"}, unschedulable=True),
        make_node("nd", labels={"zone": "d"}),
    ]
    own = LabelSelector(match_labels={"app": "web"})
    term = PodAffinityTerm(label_selector=own, topology_key="zone")
    away = Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
    labels = {"app": "web", **zone}
    web = make_pod("web", labels=labels, tolerations=[there], affinity=away)
    spread = replace(OVER_ZONES, label_selector=own, when_unsatisfiable="DoNotSchedule")
    owned = (OwnerReference(kind="ReplicaSet", name="web", controller=True),)
    web = replace(
        web,
        metadata=replace(web.metadata, owner_references=owned),
        spec=replace(web.spec, topology_spread_constraints=(spread,)),
    )
    by_owner = replace(web, spec=replace(web.spec, topology_spread_constraints=()))
    pods = [make_pod(f"p{i}", uid=f"u{i}", labels=labels, node="nd") for i in range(2)]
    guard = make_pod("guard", uid="guard", affinity=away, node="nb")
    for pod in (web, by_owner):
        yield Cluster(nodes=nodes, pods=[*pods, guard]), pod, make_pod("other")
        yield Cluster(nodes=[nodes[0], nodes[-1]], pods=pods), pod, make_pod("other")


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


def unhurried(plugin: LocalPlugin) -> LocalPlugin:
    """Return a plugin that may take a minute: what it says is tested, on machines that are busy."""
    vars(plugin)["time_budget"] = 60.0
    return plugin


def check_locality(*plugins: Callable[[], LocalPlugin], most: int = EXAMPLES) -> None:
    """Assert that the plugins are node-local, in so many random clusters at most.

    As what they say of each node with the others is what they say of it alone, it is the same with
    any others.
    """

    def holds(cluster: Cluster, pod: Pod, other: Pod) -> None:
        for make in plugins:
            plugin = unhurried(make())
            assert_node_local(plugin, pod, *cluster.nodes, pods=cluster.pods, unlike=[other])

    for example in telling():
        holds(*example)
    in_random_clusters(holds, most)


def check_signing(*plugins: Callable[[], LocalPlugin], most: int = EXAMPLES) -> None:
    """Assert that the plugins say the same of equal pods, in so many random clusters at most."""

    def holds(cluster: Cluster, pod: Pod, other: Pod) -> None:
        for make in plugins:
            assert_same_of_equal(unhurried(make()), cluster, pod, other)

    for example in telling():
        holds(*example)
    in_random_clusters(holds, most)


def assert_same_of_equal(plugin: LocalPlugin, cluster: Cluster, pod: Pod, other: Pod) -> None:
    """Assert that a plugin says the same of pods that differ only outside of its pod_fields."""
    objects = read_by(plugin, NO_OBJECTS)
    nodes = make_nodes(*cluster.nodes, pods=cluster.pods, objects=objects)

    def said(about: Pod) -> Mapping[str, object]:
        if isinstance(plugin, FilterPlugin):
            return complete(started(plugin, lambda: verdicts(plugin, about, nodes)))
        return complete(started(plugin, lambda: raw_scores(plugin, about, nodes)))

    expected = said(pod)
    for equal in equal_pods(plugin, pod, (pod, other, *unlike_pods())):
        assert said(equal) == expected, plugin.name


def assert_local(plugin: LocalPlugin, cluster: Cluster, pod: Pod, other: Pod) -> None:
    """Assert that a plugin is node-local in a cluster."""
    assert_node_local(plugin, pod, *cluster.nodes, pods=cluster.pods, unlike=[other])


def found_out(plugins: Mapping[str, tuple[Callable[[], LocalPlugin], Check]]) -> dict[str, str]:
    """Return the messages by which plugins that declare too little are found out, by their names.

    One sequence of clusters is for all of them, telling ones first and then random ones. It ends
    with the last that is found out.
    """
    messages: dict[str, str] = {}

    def holds(cluster: Cluster, pod: Pod, other: Pod) -> None:
        for name in plugins.keys() - messages.keys():
            make, check = plugins[name]
            try:
                check(unhurried(make()), cluster, pod, other)
            except AssertionError as error:
                messages[name] = str(error)
        if len(messages) == len(plugins):
            raise StopIteration

    with suppress(StopIteration):
        for example in telling():
            holds(*example)
        in_random_clusters(holds, most=2000)
    return messages


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


def marked(plugin: type[LocalPlugin], scope: Scope = Scope.NODE) -> type[LocalPlugin]:
    """Return the same plugin, which declares another scope."""
    return type("Marked", (plugin,), {"depends_on": scope})


def forgetful(plugin: LocalPlugin, field: str) -> Callable[[], LocalPlugin]:
    """Return what makes the same plugin, which does not declare one of the fields it reads."""
    kind = type(plugin)
    declared = {"depends_on": kind.depends_on, "pod_fields": without(kind, field)}
    forgetful: type[LocalPlugin] = type("Forgetful", (kind,), declared)
    return lambda: forgetful(plugin.args)


def without(kind: type[LocalPlugin], field: str) -> tuple[str, ...]:
    """Return the fields that a plugin looks at but for one."""
    return tuple(each for each in kind.pod_fields or () if each != field)


def without_each_field(
    *plugins: LocalPlugin,
) -> dict[str, tuple[Callable[[], LocalPlugin], Check]]:
    """Return plugins that do not declare one of the fields they look at, for `found_out`."""
    return {
        f"{plugin.name} {field}": (forgetful(plugin, field), assert_same_of_equal)
        for plugin in plugins
        for field in type(plugin).pod_fields or ()
    }


def _in_zone(node: NodeManifest, zone: str) -> NodeManifest:
    labels = {**node.metadata.labels, "zone": zone}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _fellow(other: Pod, pod: Pod) -> Pod:
    metadata = replace(
        other.metadata, namespace=pod.namespace, labels=pod.labels, deletion_timestamp=""
    )
    volumes = pod.spec.volumes or other.spec.volumes
    return replace(other, metadata=metadata, spec=replace(other.spec, volumes=volumes))


def _particular(pod: Pod, node_affinity: NodeAffinitySpec | None) -> Pod:
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
