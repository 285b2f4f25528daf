"""A cluster about what nodes are and have: labels, taints, images, ports, disks."""

from typing import Any

from tools.golden.objects import Cluster, container, expression, node, pod, taint
from tools.planes.embedded import Object

MIB = 1024 * 1024

NODES = (
    node("plain", {"disk": "hdd", "cores": "4", "tier": "gold"}),
    node(
        "ssd",
        {"disk": "ssd", "cores": "16"},
        images={"app:1 registry.example.com:5000/app:1": 300 * MIB, "tool:latest": 22 * MIB},
    ),
    node(
        "spare",
        {"disk": "ssd", "cores": "08"},
        taints=[taint("spare", "PreferNoSchedule"), taint("slow", "PreferNoSchedule", "very")],
        images={"app:1": 300 * MIB, "giant:2": 5000 * MIB},
    ),
    node(
        "worse",
        {"disk": "", "cores": "many"},
        taints=[taint(key, "PreferNoSchedule") for key in ("spare", "old", "loud")],
        images={"giant:2": 5000 * MIB, "localhost:5000/bare:latest": 700 * MIB},
    ),
    node("mine", {"cores": "2"}, taints=[taint("owner", "NoSchedule", "me")]),
    node("leaving", taints=[taint("gone", "NoExecute"), taint("owner", "NoSchedule", "you")]),
    node("cordoned", {"disk": "ssd"}, unschedulable=True, images={"app:1": 300 * MIB}),
)


def disk(kind: str, *, read_only: bool = False) -> list[Object]:
    """Build a list of one volume of the kind."""
    source: dict[str, Object] = {
        "gcePersistentDisk": {"pdName": "disk"},
        "awsElasticBlockStore": {"volumeID": "vol"},
        "iscsi": {"targetPortal": "10.0.0.9:3260", "iqn": "iqn.2001-04.example:disk", "lun": 0},
        "rbd": {"monitors": ["a", "b"], "image": "disk", "pool": "rbd"},
    }
    return [{"name": "disk", kind: source[kind] | {"readOnly": read_only}}]


def on_ports(*ports: Object) -> Object:
    """Build a container with ports of the node."""
    return container(ports=[{"containerPort": port["hostPort"]} | port for port in ports])


def wishing(name: str, *wishes: tuple[int, Object], **spec: Any) -> Object:
    """Build a pod that prefers nodes."""
    terms = [{"weight": weight, "preference": term} for weight, term in wishes]
    return pod(
        name,
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}},
        **spec,
    )


def requiring(name: str, *terms: Object, **spec: Any) -> Object:
    """Build a pod that requires nodes."""
    required = {"nodeSelectorTerms": list(terms)}
    return pod(
        name,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        **spec,
    )


def matching(*expressions: Object) -> Object:
    """Build a term of a node selector."""
    return {"matchExpressions": list(expressions)}


SSD = matching(expression("disk", "In", "ssd"))
BY_NAME = {"matchFields": [expression("metadata.name", "In", "plain")]}
EVERYTHING = {"operator": "Exists"}

BOUND = (
    pod("web", on_ports({"hostPort": 80}), on="plain"),
    pod("dns", on_ports({"hostPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"}), on="ssd"),
    pod("both", on_ports({"hostPort": 80, "hostIP": "10.1.1.1"}, {"hostPort": 81}), on="spare"),
    pod("gce-reads", volumes=disk("gcePersistentDisk", read_only=True), on="plain"),
    pod("gce-writes", volumes=disk("gcePersistentDisk"), on="ssd"),
    pod("aws", volumes=disk("awsElasticBlockStore", read_only=True), on="plain"),
    pod("iscsi", volumes=disk("iscsi", read_only=True), on="ssd"),
    pod("rbd", volumes=disk("rbd"), on="worse"),
)

SCORED = (
    pod("p-plain"),
    pod("p-tolerant", tolerations=[EVERYTHING]),
    pod("p-spare", tolerations=[{"key": "spare", **EVERYTHING}]),
    pod("p-slow", tolerations=[{"key": "slow", "value": "very", "effect": "PreferNoSchedule"}]),
    pod("p-wrong", tolerations=[{"key": "slow", "effect": "PreferNoSchedule"}]),
    pod("p-effect", tolerations=[{"effect": "PreferNoSchedule", **EVERYTHING}]),
    pod("p-mine", tolerations=[{"key": "owner", "value": "me"}]),
    wishing("p-ssd", (1, SSD)),
    wishing("p-cores", (30, matching(expression("cores", "Gt", "4"))), (7, SSD), (63, BY_NAME)),
    wishing("p-few-cores", (3, matching(expression("cores", "Lt", "9"))), (2, BY_NAME)),
    wishing("p-not", (9, matching(expression("disk", "NotIn", "ssd", "hdd"))), (5, SSD)),
    wishing("p-exists", (50, matching(expression("disk", "Exists"))), (49, SSD)),
    wishing("p-lacks", (17, matching(expression("disk", "DoesNotExist"))), (4, SSD)),
    wishing("p-two-in-one", (11, matching(*SSD["matchExpressions"], expression("tier", "Exists")))),
    wishing("p-empty-wish", (100, {}), (1, SSD)),
    pod("p-giant", container(image="giant:2")),
    pod("p-untagged", container(image="tool"), container("second", image="localhost:5000/bare")),
    pod("p-by-registry", container(image="registry.example.com:5000/app:1")),
    pod(
        "p-images",
        container(image="app:1"),
        container("again", image="app:1"),
        container("other", image="giant:2"),
        initContainers=[container("init", image="tool:latest"), container("i2", image="giant:2")],
        volumes=[{"name": "v", "image": {"reference": "localhost:5000/bare"}}],
    ),
    pod("p-absent", container(image="nobody-has-it:9")),
)

FILTERED = {
    "NodeUnschedulable": (
        pod("f-plain"),
        pod(
            "f-cordoned",
            tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
        ),
        pod(
            "f-cordoned-not",
            tolerations=[{"key": "node.kubernetes.io/unschedulable", "value": "yes"}],
        ),
    ),
    "TaintToleration": (
        pod("f-no-toleration"),
        pod("f-me", tolerations=[{"key": "owner", "value": "me", "effect": "NoSchedule"}]),
        pod("f-key", tolerations=[{"key": "owner", "operator": "Exists"}]),
        pod("f-gone", tolerations=[{"key": "gone", "operator": "Exists"}]),
        pod("f-no-execute", tolerations=[{"effect": "NoExecute", **EVERYTHING}]),
        pod("f-all", tolerations=[EVERYTHING]),
    ),
    "NodeAffinity": (
        pod("f-selector", nodeSelector={"disk": "ssd", "cores": "16"}),
        pod("f-empty-value", nodeSelector={"disk": ""}),
        requiring("f-either", SSD, BY_NAME),
        requiring("f-greater", matching(expression("cores", "Gt", "7"))),
        requiring("f-less", matching(expression("cores", "Lt", "3"))),
        requiring("f-not-in", matching(expression("disk", "NotIn", "ssd"))),
        requiring("f-lacks", matching(expression("disk", "DoesNotExist"))),
        requiring("f-name", BY_NAME),
        requiring("f-other-name", {"matchFields": [expression("metadata.name", "In", "nobody")]}),
        requiring("f-not-name", {"matchFields": [expression("metadata.name", "NotIn", "plain")]}),
        requiring(
            "f-two-names", BY_NAME, {"matchFields": [expression("metadata.name", "In", "ssd")]}
        ),
        requiring("f-name-and-label", SSD | {"matchFields": BY_NAME["matchFields"]}),
        requiring("f-name-and-selector", BY_NAME, nodeSelector={"disk": "ssd"}),
        requiring("f-both", SSD, nodeSelector={"cores": "08"}),
        requiring("f-empty-term", {}),
    ),
    "NodePorts": (
        pod("f-80", on_ports({"hostPort": 80})),
        pod("f-80-here", on_ports({"hostPort": 80, "hostIP": "127.0.0.1"})),
        pod("f-80-udp", on_ports({"hostPort": 80, "protocol": "UDP"})),
        pod("f-53", on_ports({"hostPort": 53, "protocol": "UDP"})),
        pod("f-53-tcp", on_ports({"hostPort": 53})),
        pod("f-sidecar-81", initContainers=[on_ports({"hostPort": 81}) | {"name": "i"}]),
        pod(
            "f-side-81",
            initContainers=[on_ports({"hostPort": 81}) | {"name": "i", "restartPolicy": "Always"}],
        ),
    ),
    "VolumeRestrictions": (
        pod("f-gce", volumes=disk("gcePersistentDisk")),
        pod("f-gce-reads", volumes=disk("gcePersistentDisk", read_only=True)),
        pod("f-aws-reads", volumes=disk("awsElasticBlockStore", read_only=True)),
        pod("f-iscsi", volumes=disk("iscsi")),
        pod("f-iscsi-reads", volumes=disk("iscsi", read_only=True)),
        pod("f-rbd-reads", volumes=disk("rbd", read_only=True)),
    ),
}

NODE_PROPERTIES = Cluster(
    name="nodes",
    nodes=NODES,
    bound=BOUND,
    profiles=("default",),
    scored=SCORED,
    filtered=FILTERED,
)
