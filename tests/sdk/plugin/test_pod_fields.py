"""Fields of pods by their paths: what they read, and pods that read alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod
from moorage.models import (
    Affinity,
    Container,
    ImageSource,
    NodeAffinity,
    PodAffinity,
    Toleration,
    Volume,
)
from moorage.plugin.pod_fields import FIELDS, SIGNATURE, alike, reader, union
from moorage.testing import make_pod
from moorage.testing.locality import FULLY_SPECIFIED_POD, unlike_pods
from tests.clusters import demanding_pods

REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
GPU = Toleration(key="gpu")
IMAGES = (Container(name="a", image="one"), Container(name="b", image="two"))


@pytest.mark.parametrize(
    ("path", "pod", "value"),
    [
        ("metadata.namespace", Pod(), "default"),
        ("metadata.labels", make_pod(labels={"app": "web"}), {"app": "web"}),
        ("spec.tolerations", make_pod(tolerations=[GPU]), (GPU,)),
        ("spec.initContainers[*].image", make_pod(init_containers=IMAGES), ["one", "two"]),
        ("spec.affinity.nodeAffinity", make_pod(), None),
        (REQUIRED, make_pod(affinity=Affinity(pod_affinity=PodAffinity())), None),
        (REQUIRED, make_pod(affinity=Affinity(node_affinity=NodeAffinity())), None),
        ("spec.volumes[*].image.reference", make_pod(claims=["data"]), [None]),
        (
            "spec.volumes[*].image",
            make_pod(volumes=[Volume(image=ImageSource(reference="x"))]),
            [ImageSource(reference="x")],
        ),
    ],
)
def test_a_path_reads_as_in_json(path: str, pod: Pod, value: object) -> None:
    assert reader(path)(pod) == value


def test_several_plugins_look_at_all_their_fields_once() -> None:
    assert union([]) == ()
    assert union([(), ("spec.tolerations",), ("spec.overhead", "spec.tolerations")]) == (
        "spec.overhead",
        "spec.tolerations",
    )
    inner = ("spec.containers[*].image", "spec.containers", "spec.containers[*].ports[*].hostIP")
    assert union([inner, ("spec.affinity.nodeAffinity",), ("spec.affinity",)]) == (
        "spec.affinity",
        "spec.containers",
    )


def test_who_does_not_say_or_knows_more_fields_looks_at_everything() -> None:
    assert union([("spec.tolerations",), None]) == SIGNATURE
    assert union([("spec.tolerations",), ("spec.ofTomorrow",)]) == (*SIGNATURE[:-1], "spec")


@given(
    pod=demanding_pods(),
    other=demanding_pods() | st.sampled_from(list(unlike_pods())),
    paths=st.lists(st.sampled_from(sorted(FIELDS)), max_size=4),
)
def test_a_pod_that_is_made_alike_reads_alike(pod: Pod, other: Pod, paths: list[str]) -> None:
    made = alike(pod, other, paths)
    for path in (*paths, "spec.schedulerName"):
        assert reader(path)(made) == reader(path)(pod), path


@given(pod=demanding_pods())
def test_all_else_stays_the_others(pod: Pod) -> None:
    made = alike(pod, FULLY_SPECIFIED_POD, ["spec.tolerations", "spec.affinity.nodeAffinity"])
    for path in ("metadata.labels", "spec.containers", "spec.affinity.podAffinity", "spec.volumes"):
        assert reader(path)(made) == reader(path)(FULLY_SPECIFIED_POD), path


def test_unlike_pods_differ_from_each_other_in_all_fields_of_the_signature() -> None:
    one, other = unlike_pods()
    tops = [path for path in FIELDS if path.count(".") == 1 and "[" not in path]
    for path in (*tops, "spec.affinity.nodeAffinity", "spec.affinity.podAffinity"):
        assert reader(path)(one) != reader(path)(other), path
