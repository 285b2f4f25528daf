from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod, Rejection
from moorage.in_tree.filters.volume_restrictions import VolumeRestrictions
from moorage.models import NodeManifest, Volume, decode_pod
from moorage.testing import make_pod, run_filter
from tests.clusters import Cluster, clusters, volumes

IN_USE = Rejection("node(s) had no available disk", unresolvable=False)


def test_disks_are_read_from_pods_as_kubernetes_writes_them() -> None:
    pod = decode_pod(
        """{"spec": {"volumes": [
            {"name": "a", "gcePersistentDisk": {"pdName": "d", "readOnly": true}},
            {"name": "b", "awsElasticBlockStore": {"volumeID": "v"}},
            {"name": "c", "iscsi": {"iqn": "q", "lun": 0, "targetPortal": "p"}},
            {"name": "d", "rbd": {"monitors": ["m1", "m2"], "image": "i"}},
            {"name": "e", "emptyDir": {}}
        ]}}"""
    )
    assert pod.disks == (
        (("gce", "d"), True),
        (("aws", "v"), False),
        (("iscsi", "q"), False),
        (("rbd", "m1", "rbd", "i"), False),
        (("rbd", "m2", "rbd", "i"), False),
    )


@given(clusters(), st.lists(volumes, max_size=2))
def test_agrees_with_a_look_at_each_node(cluster: Cluster, wanted: list[Volume]) -> None:
    def clash(one: Volume, other: Volume) -> bool:
        a, b = one.gce_persistent_disk, other.gce_persistent_disk
        if a and b and a.pd_name == b.pd_name and not (a.read_only and b.read_only):
            return True
        c, d = one.aws_elastic_block_store, other.aws_elastic_block_store
        if c and d and c.volume_id == d.volume_id:
            return True
        e, f = one.iscsi, other.iscsi
        if e and f and e.iqn == f.iqn and not (e.read_only and f.read_only):
            return True
        g, h = one.rbd, other.rbd
        same = g and h and set(g.monitors) & set(h.monitors) and g.pool == h.pool
        return bool(same and g and h and g.image == h.image and not (g.read_only and h.read_only))

    def mounted(node: NodeManifest) -> list[Volume]:
        return [volume for pod in cluster.pods_on(node) for volume in pod.spec.volumes]

    def verdict(node: NodeManifest) -> Rejection | None:
        return IN_USE if any(clash(a, b) for a in wanted for b in mounted(node)) else None

    pod: Pod = make_pod("new", volumes=wanted)
    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(VolumeRestrictions(), pod, *cluster.nodes, pods=cluster.pods) == expected
