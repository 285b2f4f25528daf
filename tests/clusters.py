"""Random clusters: few names, keys and values, so that everything collides often."""

from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.models import (
    Affinity,
    AwsDiskSource,
    Container,
    ContainerImage,
    ContainerPort,
    GceDiskSource,
    IscsiSource,
    LabelSelector,
    NodeAffinitySpec,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    RbdSource,
    Requirement,
    Resources,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from moorage.testing import make_node, make_pod

KEYS = ("zone", "disk", "size")
VALUES = ("a", "b", "", "1", "2")
NAMES = tuple(f"n{i}" for i in range(6))
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINT_KEYS = ("gpu", "node.kubernetes.io/unschedulable")
GPU = "example.com/gpu"
APPS = ("web", "db")
NAMESPACES = ("default", "team")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
taints = st.builds(
    Taint,
    key=st.sampled_from(TAINT_KEYS),
    value=st.sampled_from(VALUES),
    effect=st.sampled_from(EFFECTS),
)
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("", *TAINT_KEYS)),
    operator=st.sampled_from(("Exists", "Equal", "Gt", "Lt")),
    value=st.sampled_from(VALUES),
    effect=st.sampled_from(("", *EFFECTS)),
)
amounts = {
    "cpu": st.sampled_from(("0", "500m", "1", "3")),
    "memory": st.sampled_from(("0", "1Gi", "1500M", "3Gi")),
    "ephemeral-storage": st.sampled_from(("0", "10Gi")),
    GPU: st.sampled_from(("0", "1", "3")),
    "hugepages-2Mi": st.sampled_from(("0", "4Mi")),
}
requests = st.fixed_dictionaries({}, optional=amounts)
allocatable = st.fixed_dictionaries({"pods": st.sampled_from(("0", "1", "3"))}, optional=amounts)
images = st.builds(
    ContainerImage,
    names=st.lists(st.sampled_from(("app:v1", "base:latest", "db:2")), max_size=2).map(tuple),
    size_bytes=st.integers(0, 3_000_000_000),
)
ports = st.builds(
    ContainerPort,
    host_port=st.sampled_from((0, 80, 81)),
    host_ip=st.sampled_from(("", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::")),
    protocol=st.sampled_from(("TCP", "UDP")),
)
containers = st.builds(
    Container,
    name=st.just("c"),
    image=st.sampled_from(("app:v1", "base", "registry:5000/x", "db:2")),
    resources=st.builds(Resources, requests=requests),
    ports=st.lists(ports, max_size=2).map(tuple),
)
conditions = st.builds(
    Requirement,
    key=st.sampled_from(KEYS),
    operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
    values=st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
)
fields = st.builds(
    Requirement,
    key=st.sampled_from(("metadata.name", "metadata.uid")),
    operator=st.sampled_from(("In", "NotIn")),
    values=st.tuples(st.sampled_from(NAMES)),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(conditions, max_size=2).map(tuple),
    match_fields=st.lists(fields, max_size=1).map(tuple),
)
selectors = st.builds(NodeSelector, node_selector_terms=st.lists(terms, max_size=3).map(tuple))
node_affinities = st.builds(
    NodeAffinitySpec,
    required=st.none() | selectors,
    preferred=st.lists(
        st.builds(PreferredSchedulingTerm, weight=st.integers(1, 100), preference=terms), max_size=2
    ).map(tuple),
)

pod_labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(APPS))
label_selectors = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(
        st.sampled_from(("app", "tier")), st.sampled_from(APPS), max_size=1
    ),
    match_expressions=st.lists(
        st.builds(
            Requirement,
            key=st.sampled_from(("app", "tier")),
            operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
            values=st.lists(st.sampled_from(APPS), max_size=2).map(tuple),
        ),
        max_size=1,
    ).map(tuple),
)
by_name = Requirement(key="kubernetes.io/metadata.name", operator="NotIn", values=("team",))
pod_terms = st.builds(
    PodAffinityTerm,
    label_selector=st.one_of(label_selectors, label_selectors, label_selectors, st.none()),
    namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=1).map(tuple),
    namespace_selector=st.sampled_from(
        (None, None, LabelSelector(), LabelSelector(match_expressions=(by_name,)))
    ),
    topology_key=st.sampled_from(("kubernetes.io/hostname", "zone")),
)
wishes = st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 100), pod_affinity_term=pod_terms)
pod_affinities = st.builds(
    PodAffinity,
    required=st.lists(pod_terms, max_size=2).map(tuple),
    preferred=st.lists(wishes, max_size=2).map(tuple),
)
affinities = st.one_of(
    st.none(),
    st.builds(Affinity, pod_affinity=pod_affinities),
    st.builds(Affinity, pod_anti_affinity=pod_affinities),
    st.builds(Affinity, pod_affinity=pod_affinities, pod_anti_affinity=pod_affinities),
)
monitors = st.lists(st.sampled_from(("m1", "m2", "m3")), min_size=1, max_size=2).map(tuple)
volumes = st.one_of(
    st.builds(
        Volume,
        gce_persistent_disk=st.builds(
            GceDiskSource, pd_name=st.sampled_from("ab"), read_only=st.booleans()
        ),
    ),
    st.builds(
        Volume,
        aws_elastic_block_store=st.builds(AwsDiskSource, volume_id=st.sampled_from("ab")),
    ),
    st.builds(Volume, iscsi=st.builds(IscsiSource, iqn=st.just("a"), read_only=st.booleans())),
    st.builds(
        Volume,
        rbd=st.builds(
            RbdSource,
            monitors=monitors,
            pool=st.sampled_from(("rbd", "ssd")),
            image=st.just("a"),
            read_only=st.booleans(),
        ),
    ),
)
spread_constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=st.integers(1, 3),
    topology_key=st.sampled_from(("kubernetes.io/hostname", "zone", "disk")),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    label_selector=st.none() | label_selectors,
    min_domains=st.sampled_from((None, 1, 3)),
    node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
    match_label_keys=st.lists(st.sampled_from(("app", "tier")), max_size=1).map(tuple),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    nodes: list[NodeManifest]
    pods: list[Pod]

    def pods_on(self, node: NodeManifest) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node.name]


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeManifest:
    node = make_node(
        name,
        labels=draw(labels),
        taints=draw(st.lists(taints, max_size=2)),
        unschedulable=draw(st.booleans()),
    )
    status = replace(
        node.status,
        allocatable=draw(allocatable),
        images=tuple(draw(st.lists(images, max_size=2))),
    )
    return replace(node, status=status)


@st.composite
def placed_pods(draw: st.DrawFn, name: str, places: tuple[str, ...]) -> Pod:
    pod = make_pod(
        name,
        uid=f"uid-{name}",
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(pod_labels),
        affinity=draw(affinities),
        volumes=draw(st.just(()) | st.tuples(volumes)),
        node=draw(st.sampled_from(places)),
    )
    parts = tuple(draw(st.lists(containers, min_size=1, max_size=2)))
    deleted = draw(st.sampled_from(("", "", "2026-01-01T00:00:00Z")))
    metadata = replace(pod.metadata, deletion_timestamp=deleted)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, containers=parts))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    members = [draw(nodes(name)) for name in names]
    count = draw(st.integers(0, 5))
    return Cluster(nodes=members, pods=[draw(placed_pods(f"p{i}", names)) for i in range(count)])


@st.composite
def incoming_pods(draw: st.DrawFn) -> Pod:
    pod = make_pod("incoming", tolerations=draw(st.lists(tolerations, max_size=2)))
    spec = replace(
        pod.spec,
        containers=tuple(draw(st.lists(containers, min_size=1, max_size=2))),
        init_containers=tuple(draw(st.lists(containers, max_size=1))),
    )
    return replace(pod, spec=spec)


@st.composite
def demanding_pods(draw: st.DrawFn) -> Pod:
    """Incoming pods with something of all that plugins look at."""
    pod = draw(incoming_pods())
    zones = st.fixed_dictionaries({}, optional={"zone": st.sampled_from(VALUES)})
    affinity = draw(affinities) or Affinity()
    restart_policy = draw(st.sampled_from(("", "Always")))
    spec = replace(
        pod.spec,
        init_containers=tuple(
            replace(each, restart_policy=restart_policy) for each in pod.spec.init_containers
        ),
        overhead=draw(st.just({}) | requests),
        resources=Resources(requests=draw(st.just({}) | requests)),
        node_name=draw(st.sampled_from(("", "", "", "n0"))),
        node_selector=draw(st.just({}) | zones),
        affinity=replace(affinity, node_affinity=draw(st.none() | node_affinities)),
        volumes=draw(st.just(()) | st.tuples(volumes)),
        topology_spread_constraints=tuple(draw(st.lists(spread_constraints, max_size=2))),
    )
    owned = draw(st.booleans())
    metadata = replace(
        pod.metadata,
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(pod_labels) | draw(zones),
        owner_references=(OwnerReference(kind="ReplicaSet", controller=True),) if owned else (),
    )
    return replace(pod, metadata=metadata, spec=spec)
