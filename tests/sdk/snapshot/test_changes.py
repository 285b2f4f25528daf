"""Any sequence of changes leaves the same picture as building it at once from the final state."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moorage import Encoded, Nodes
from moorage.models import ContainerPort, Disk, LabelSelector, NodeManifest, Pod, PodAffinityTerm
from moorage.snapshot import Snapshot
from moorage.testing import make_pod
from tests.clusters import APPS, GPU, KEYS, NAMESPACES, nodes, placed_pods

ROWS = (0, 1, 2, 63, 64, 200)
"""Far enough apart that the first capacity of 64 does not do."""

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", GPU, "hugepages-2Mi", "unheard-of")
IMAGES = ("app:v1", "base:latest", "db:2", "unheard-of")
PORTS = [
    ContainerPort(host_port=port, host_ip=ip, protocol=protocol)
    for port in (80, 81)
    for ip in ("", "127.0.0.1", "10.0.0.1", "::")
    for protocol in ("TCP", "UDP")
]
DISKS = [
    Disk(identity, read_only)
    for identity in (("gce", "a"), ("aws", "a"), ("iscsi", "a"), ("rbd", "m1", "rbd", "a"))
    for read_only in (True, False)
]
PROBES = [
    make_pod("probe", namespace=namespace, labels={"app": app, "tier": app})
    for namespace in NAMESPACES
    for app in APPS
]
TERMS = [PodAffinityTerm(label_selector=LabelSelector())] + [
    PodAffinityTerm(label_selector=LabelSelector(match_labels={key: app}))
    for key in ("app", "tier")
    for app in APPS
]


@st.composite
def places(draw: st.DrawFn) -> tuple[int, NodeManifest]:
    """A row with a node; each row has two names of its own, so that it changes hands."""
    row = draw(st.sampled_from(ROWS))
    return row, draw(nodes(f"n{row}-{draw(st.sampled_from('ab'))}"))


rows = st.sampled_from(ROWS)
pods = st.sampled_from([f"p{i}" for i in range(4)]).flatmap(lambda name: placed_pods(name, ("",)))
uids = pods.map(lambda pod: pod.uid)


def picture(selection: Nodes) -> dict[str, Any]:
    """Everything that a plugin can see."""
    images = {name: selection.image_sizes(name) for name in IMAGES}
    return {
        "rows": selection.rows.tolist(),
        "names": selection.names,
        "size": selection.cluster_size,
        "allocatable": {r: selection.allocatable(r).tolist() for r in RESOURCES},
        "requested": {r: selection.requested(r).tolist() for r in RESOURCES},
        "nonzero": {r: selection.nonzero_requested(r).tolist() for r in ("cpu", "memory")},
        "labels": {key: _decoded(selection.label(key)) for key in KEYS},
        "taints": _decoded(selection.taints()),
        "cordoned": selection.unschedulable().tolist(),
        "images": {name: (sizes.tolist(), count) for name, (sizes, count) in images.items()},
        "image names": selection.image_names(lambda name: ":" in name).tolist(),
        "ports": [selection.port_conflicts([port]).tolist() for port in PORTS],
        "disks": [selection.disk_conflicts([disk]).tolist() for disk in DISKS],
        "pods": [sorted(pod.uid for pod in node.pods) for node in selection],
        "per node": [(node.manifest, dict(node.requested)) for node in selection],
        "labelled": [
            selection.count_pods([term], namespace, terminating=terminating).tolist()
            for term in TERMS
            for namespace in NAMESPACES
            for terminating in (True, False)
        ],
        "terms": [
            {term: counts.tolist() for term, counts in selection.terms_about(probe).items()}
            for probe in PROBES
        ],
        "newly placed": selection.newly_placed(
            "cpu", lambda pod: 1 + pod.requests.get("cpu", 0), within=1000
        ).tolist(),
        "positions": [selection.position(name) for name in selection.names],
    }


def _decoded(column: Encoded[Any]) -> list[Any]:
    return [column.values[code] for code in column.codes]


class Changes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot()
        self.nodes: dict[int, NodeManifest] = {}
        self.pods: dict[str, tuple[int, Pod]] = {}
        picture(self.snapshot.nodes())  # from here on the encoded columns are kept up

    @rule(place=places())
    def set_node(self, place: tuple[int, NodeManifest]) -> None:
        row, node = place
        self.nodes, self.pods = self.replaced(row, node)
        self.snapshot.set_node(row, node)

    @rule(row=rows)
    def remove_row(self, row: int) -> None:
        self.nodes, self.pods = self.replaced(row, None)
        self.snapshot.remove_row(row)

    @rule(row=rows, pod=pods)
    def place_pod(self, row: int, pod: Pod) -> None:
        if row in self.nodes:
            self.pods[pod.uid] = (row, pod)
            self.snapshot.place_pod(row, pod)

    @rule(uid=uids)
    def remove_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.snapshot.remove_pod(uid)

    @rule(
        overrides=st.lists(places(), max_size=3).map(dict),
        excluded=st.lists(uids, max_size=2),
        added=st.lists(st.tuples(rows, pods), max_size=2, unique_by=lambda each: each[1].uid),
    )
    def overlay(
        self,
        overrides: dict[int, NodeManifest],
        excluded: list[str],
        added: list[tuple[int, Pod]],
    ) -> None:
        before = self.nodes, self.pods
        on_nodes = [(row, pod) for row, pod in added if row in overrides or row in self.nodes]
        with self.snapshot.overlaid(overrides, excluded, on_nodes):
            for row, node in overrides.items():
                self.nodes, self.pods = self.replaced(row, node)
            self.pods = {uid: place for uid, place in self.pods.items() if uid not in excluded}
            for row, pod in on_nodes:
                if pod.uid not in before[1]:
                    self.pods = {**self.pods, pod.uid: (row, pod)}
            self.is_as_built_at_once()
        self.nodes, self.pods = before

    def replaced(
        self, row: int, node: NodeManifest | None
    ) -> tuple[dict[int, NodeManifest], dict[str, tuple[int, Pod]]]:
        """Return the expected state with another node in *row*: pods stay with theirs."""
        old = self.nodes.get(row)
        others = {r: n for r, n in self.nodes.items() if r != row}
        if old and node and old.name == node.name:
            return {**others, row: node}, self.pods
        pods = {uid: place for uid, place in self.pods.items() if place[0] != row}
        return others if node is None else {**others, row: node}, pods

    @invariant()
    def is_as_built_at_once(self) -> None:
        rebuilt = Snapshot()
        for row, node in self.nodes.items():
            rebuilt.set_node(row, node)
        for row, pod in self.pods.values():
            rebuilt.place_pod(row, pod)
        assert picture(self.snapshot.nodes()) == picture(rebuilt.nodes())
        assert self.snapshot.pod_count == rebuilt.pod_count == len(self.pods)


TestChanges = Changes.TestCase
TestChanges.settings = settings(stateful_step_count=20)
