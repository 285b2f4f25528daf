import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import ConfigurationError, Pod
from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import Cluster, clusters, incoming_pods

MIB = 1024 * 1024


def test_thresholds_are_arguments_and_must_be_in_order() -> None:
    args = check_arguments(
        {"minThreshold": 0, "maxContainerThreshold": 10 * MIB}, ImageLocality.Args, "args"
    )
    node = make_node(images={"app:v1": 5 * MIB})
    assert run_score(ImageLocality(args), make_pod(image="app:v1"), node) == {node.name: 50}
    with pytest.raises(ConfigurationError, match="maxContainerThreshold must be larger"):
        check_arguments({"minThreshold": 2**40}, ImageLocality.Args, "args")


@given(clusters(), incoming_pods(), st.integers(0, 100 * MIB))
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod, low: int) -> None:
    sizes = [
        {name: image.size_bytes for image in node.status.images for name in image.names}
        for node in cluster.nodes
    ]
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    high = 1000 * MIB * len(containers)
    names = [
        container.image if ":" in container.image.split("/")[-1] else f"{container.image}:latest"
        for container in containers
    ]

    def score(own: dict[str, int]) -> int:
        total = 0
        for name in names:
            if name in own:
                total += int(own[name] * (sum(name in other for other in sizes) / len(sizes)))
        return 100 * (min(max(total, low), high) - low) // (high - low)

    plugin = ImageLocality(ImageLocality.Args(min_threshold=low))
    expected = {node.name: score(own) for node, own in zip(cluster.nodes, sizes, strict=True)}
    assert run_score(plugin, pod, *cluster.nodes) == expected
