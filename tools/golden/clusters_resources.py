"""A cluster about resources: fractions, zeros, defaults, initialisation, overcommitment."""

from tools.golden.objects import Cluster, container, node, pod

RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "133m", "memory": "77Mi"}},
}

NODES = (
    node(
        "big",
        cpu="7910m",
        memory="32614144Ki",
        ephemeral_storage="95551679124",
        hugepages_2Mi="64Mi",
        gpu="4",
    ),
    node("odd", cpu="3.333", memory="1234567890", gpu="3"),
    node("milli", cpu="999m", memory="928974848000m", ephemeral_storage="1Gi"),
    node("tiny", cpu="230m", memory="301Mi", pods="5"),
    node("no-memory", cpu="2", memory="0"),
    node("overcommitted", cpu="1", memory="1Gi", ephemeral_storage="10Gi", gpu="1"),
    node("two-pods", cpu="16", memory="64Gi", pods="2"),
    node("half", cpu="4", memory="2Gi"),
    node("even", cpu="2", memory="4Gi", ephemeral_storage="20Gi", gpu="0"),
)

BOUND = (
    pod("idle-1", on="big"),
    pod("idle-2", container(), container("second", cpu="15m"), on="big"),
    pod("zero", container(cpu="0", memory="0"), on="odd"),
    pod("half-zero", container(cpu="0"), on="milli"),
    pod(
        "init-heavy",
        container(cpu="100m", memory="10Mi"),
        initContainers=[container("init", cpu="1100m", memory="5Mi")],
        on="odd",
    ),
    pod(
        "sidecar",
        container(cpu="70m", memory="33Mi"),
        initContainers=[
            container("first", cpu="900m", memory="1Mi"),
            container("side", always=True, cpu="35m"),
            container("last", cpu="200m", memory="300Mi"),
        ],
        on="big",
    ),
    pod("heavy", container(cpu="1m"), runtimeClassName="heavy", on="even"),
    pod("gpu", container(limits={"gpu": "1"}, cpu="10m"), on="big"),
    pod("gpus", container(limits={"gpu": "2"}), on="odd"),
    pod("limits", container(limits={"cpu": "177m", "memory": "99M"}), on="even"),
    pod("disk", container(ephemeral_storage="7Gi", cpu="3m"), on="even"),
    pod("huge", container(limits={"hugepages_2Mi": "32Mi"}, cpu="1m", memory="1Mi"), on="big"),
    pod(
        "as-a-whole",
        container(cpu="20m"),
        container("second"),
        resources={"requests": {"cpu": "333m"}},
        on="even",
    ),
    pod("over-1", container(cpu="700m", memory="800Mi"), on="overcommitted"),
    pod("over-2", container(cpu="800m", memory="900Mi"), on="overcommitted"),
    pod("one", container(cpu="5"), on="two-pods"),
    pod("two", container(memory="13Gi"), on="two-pods"),
)

SCORED = (
    pod("p-nothing"),
    pod("p-zero", container(cpu="0", memory="0")),
    pod("p-cpu-only", container(cpu="50m")),
    pod("p-memory-only", container(memory="1.5Mi")),
    pod("p-odd", container(cpu="0.137", memory="123456789")),
    pod("p-thousandth", container(cpu="1m", memory="1")),
    pod("p-half-idle", container(cpu="30m", memory="20Mi"), container("second")),
    pod(
        "p-init",
        container(cpu="10m", memory="1Mi"),
        initContainers=[container("init", cpu="190m", memory="200Mi")],
    ),
    pod("p-idle-init", container(cpu="10m", memory="1Mi"), initContainers=[container("init")]),
    pod(
        "p-sidecars",
        container(cpu="11m", memory="7Mi"),
        initContainers=[
            container("side", always=True, cpu="13m", memory="17Mi"),
            container("init", cpu="90m", memory="50Mi"),
            container("other-side", always=True),
        ],
    ),
    pod("p-overhead", container(cpu="17m"), runtimeClassName="heavy"),
    pod("p-as-a-whole", container(), resources={"requests": {"cpu": "77m"}}),
    pod("p-whole-with-more", container(memory="9Mi"), resources={"requests": {"cpu": "77m"}}),
    pod("p-limits", container(limits={"cpu": "77m", "memory": "88Mi"})),
    pod("p-gpu", container(limits={"gpu": "1"}, cpu="10m", memory="1Mi")),
    pod("p-disk", container(ephemeral_storage="999Mi", cpu="7m", memory="3Mi")),
    pod("p-large", container(cpu="1500m", memory="1Gi")),
)

FILTERED = {
    "NodeResourcesFit": (
        pod("f-nothing"),
        pod("f-zero", container(cpu="0")),
        pod("f-one-more", container(cpu="231m", memory="301Mi")),
        pod("f-memory", container(memory="928974849")),
        pod("f-gpu", container(limits={"gpu": "2"})),
        pod("f-several", container(limits={"gpu": "4"}, cpu="7", ephemeral_storage="80Gi")),
        pod("f-huge", container(limits={"hugepages_2Mi": "34Mi"}, cpu="1m", memory="1Mi")),
        pod("f-too-large", container(cpu="64", memory="1Ti")),
        pod("f-large-as-a-node", container(cpu="7100m")),
        pod("f-init", container(cpu="1"), initContainers=[container("init", cpu="3300m")]),
        pod("f-overhead", container(cpu="100m", memory="300Mi"), runtimeClassName="heavy"),
    ),
}

RESOURCES = Cluster(
    name="resources",
    nodes=NODES,
    bound=BOUND,
    others=(RUNTIME_CLASS,),
    profiles=("default", "most", "ratio", "least"),
    scored=SCORED,
    filtered=FILTERED,
)
