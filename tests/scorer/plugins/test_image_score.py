import pytest
from hypothesis import given

from moorage import Pod
from moorage.models import Container, NodeManifest
from moorage.testing import make_node, make_nodes, make_pod, run_score
from services.scorer.plugins.image_score import ImageScore
from tests.clusters import Cluster, clusters, incoming_pods

DIGEST = "sha256:0123"


@pytest.mark.parametrize(
    ("image", "there", "count"),
    [
        ("nginx", "nginx:1.7.9", 1),
        ("nginx", "docker.io/library/nginx:1.7.9", 1),
        ("nginx", "bitnami/nginx-exporter:1", 1),
        ("nginx", f"nginx@{DIGEST}", 1),
        ("nginx:1.7", "nginx:1.7.9", 1),
        ("nginx:1.7.9", "docker.io/library/nginx:1.7.9", 1),
        ("nginx:1.7.9", "nginx:1.7.90", 1),
        ("nginx:1.7.9", "nginx:1.7", 0),
        ("docker.io/library/nginx:1.7.9", "nginx:1.7.9", 0),
        ("nginx:latest", f"nginx@{DIGEST}", 0),
        (f"nginx@{DIGEST}", f"docker.io/library/nginx@{DIGEST}", 1),
        ("Nginx", "nginx:1.7.9", 0),
        ("", "nginx:1.7.9", 1),
    ],
)
def test_an_image_counts_as_part_of_a_name(image: str, there: str, count: int) -> None:
    nodes = make_node("has", images={there: 1}), make_node("empty")
    assert counts(make_pod(image=image), *nodes) == [count, 0]


def test_containers_count_one_each_and_init_containers_do_not() -> None:
    pod = make_pod(
        image="nginx", images=["nginx", "redis"], init_containers=[Container(image="db")]
    )
    both = make_node("both", images={"nginx:1": 1, "nginx:2": 1, "redis:1": 1, "db:1": 1})
    assert counts(pod, both, make_node("one", images={"redis:1": 1})) == [3, 1]


def test_a_container_is_worth_10_points() -> None:
    # The article's example: 0, 0, 1 of an extender's 10
    nodes = (
        *map(make_node, ("master", "worker1")),
        make_node("worker2", images={"nginx:1.7.9": 1}),
    )
    scores = run_score(ImageScore(), make_pod(image="nginx:1.7.9"), *nodes)
    assert scores == {"master": 0, "worker1": 0, "worker2": 10}


def test_more_than_10_containers_share_the_points() -> None:
    # 20 and 10 containers: 100 * 10 / 20
    pod = make_pod(image="a", images=["a"] * 9 + ["b"] * 10)
    nodes = make_node("all", images={"a:1": 1, "b:1": 1}), make_node("phase", images={"a:1": 1})
    assert run_score(ImageScore(), pod, *nodes) == {"all": 100, "phase": 50}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    def count(node: NodeManifest) -> int:
        names = [name for image in node.status.images for name in image.names]
        return sum(any(c.image in name for name in names) for c in pod.spec.containers)

    assert counts(pod, *cluster.nodes) == [count(node) for node in cluster.nodes]


def counts(pod: Pod, *nodes: NodeManifest) -> list[float]:
    scores: list[float] = ImageScore().score(pod, make_nodes(*nodes)).tolist()
    return scores
