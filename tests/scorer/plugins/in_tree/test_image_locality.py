import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import ConfigurationError, Pod
from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.models import Container, ImageSource, NodeManifest, Volume
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import Cluster, clusters, incoming_pods

MIB = 1024 * 1024


def with_image(size: int, image: str = "app:v1", nodes: int = 1, of: int = 1) -> list[NodeManifest]:
    images = ({image: size * MIB} if i < nodes else {} for i in range(of))
    return [make_node(f"n{i}", images=has) for i, has in enumerate(images)]


@pytest.mark.parametrize(
    ("size", "score"),
    [
        # 100 * (min(size, 1000) - 23) // 977
        pytest.param(23, 0, id="23 MiB: the lower threshold"),
        pytest.param(10, 0, id="10 MiB: below it"),
        pytest.param(33, 1, id="33 MiB: 1000//977"),
        pytest.param(500, 48, id="500 MiB: 47700//977 = 48.8"),
        pytest.param(999, 99, id="999 MiB: 97600//977 = 99.9"),
        pytest.param(1000, 100, id="1000 MiB: the upper threshold"),
        pytest.param(9000, 100, id="9000 MiB: above it"),
    ],
)
def test_scores_rise_between_the_thresholds(size: int, score: int) -> None:
    assert run_score(ImageLocality(), make_pod(image="app:v1"), *with_image(size)) == {"n0": score}


def test_images_count_in_proportion_to_the_nodes_that_have_them() -> None:
    # 800 MiB on 2 of 4 nodes count as 400 MiB: 100 * 377 // 977 = 38.6
    scores = run_score(ImageLocality(), make_pod(image="app:v1"), *with_image(800, nodes=2, of=4))
    assert scores == {"n0": 38, "n1": 38, "n2": 0, "n3": 0}


def test_an_image_counts_in_whole_bytes() -> None:
    # 3 bytes on 1 of 2 nodes count as 1.5 -> 1, twice; of 2 * 50 bytes: 100 * 2 // 100
    plugin = ImageLocality(ImageLocality.Args(min_threshold=0, max_container_threshold=50))
    nodes = make_node("n0", images={"a:1": 3, "b:1": 3}), make_node("n1")
    scores = run_score(plugin, make_pod(image="a:1", images=["b:1"]), *nodes)
    assert scores == {"n0": 2, "n1": 0}


def test_each_container_raises_the_upper_threshold() -> None:
    # Two containers, one with an image of 1000 MiB: 100 * 977 // 1977 = 49.4
    pod = make_pod(image="app:v1", images=["other"])
    assert run_score(ImageLocality(), pod, *with_image(1000)) == {"n0": 49}
    # The same image twice: 100 * 1977 // 1977
    assert run_score(
        ImageLocality(), make_pod(image="app:v1", images=["app:v1"]), *with_image(1000)
    ) == {"n0": 100}
    # As an init container's: 100 * 977 // 1977 again
    pod = make_pod(image="other", init_containers=[Container(image="app:v1")])
    assert run_score(ImageLocality(), pod, *with_image(1000)) == {"n0": 49}


def test_each_image_volume_counts_and_raises_the_upper_threshold() -> None:
    # 100 * 977 // 1977, as for a second container
    pod = make_pod(image="other")
    volume = Volume(name="model", image=ImageSource(reference="app:v1"))
    pod = replace(pod, spec=replace(pod.spec, volumes=(volume,)))
    assert run_score(ImageLocality(), pod, *with_image(1000)) == {"n0": 49}


@pytest.mark.parametrize(
    ("wanted", "there", "score"),
    [
        ("app", "app:latest", 100),
        ("app", "app", 0),
        ("registry:5000/app", "registry:5000/app:latest", 100),
        ("registry:5000/app:v1", "registry:5000/app:v1", 100),
        ("app@sha256:12", "app@sha256:12", 100),
    ],
)
def test_images_without_a_tag_are_the_latest(wanted: str, there: str, score: int) -> None:
    pod = make_pod(image=wanted)
    assert run_score(ImageLocality(), pod, *with_image(1000, there)) == {"n0": score}


def test_thresholds_are_arguments_and_must_be_in_order() -> None:
    args = check_arguments(
        {"minThreshold": 0, "maxContainerThreshold": 10 * MIB}, ImageLocality.Args, "args"
    )
    assert run_score(ImageLocality(args), make_pod(image="app:v1"), *with_image(5)) == {"n0": 50}
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
