"""What plugins declare of themselves, so that others can cache their answers."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import (
    ENDED_PODS,
    BindPlugin,
    Node,
    Normalization,
    PluginFailedError,
    Pod,
    Scope,
    ScorePlugin,
    Scores,
    normalize_by_maximum,
)
from moorage.plugin.hooks import Plugin, extension_points
from moorage.testing import make_node, make_pod, run_score
from moorage.v1 import types_pb2 as pb
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.convert import scope_from_proto
from moorage_host.rpc.describe import describe_plugin
from tests.passing import Passes


class Local(Passes, ScorePlugin):
    """Looks at one node at a time."""

    depends_on = Scope.NODE
    normalization = Normalization.MAXIMUM

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.annotations["points"])


class Comparing(Local):
    """Compares a node with the others."""

    depends_on = Scope.MANIFESTS


class Derived(Local):
    """May look at others."""


class Reversed(Local):
    """Prefers the least."""

    normalization = Normalization.REVERSED_MAXIMUM


class Overriding(Local):
    """Normalises by itself, whatever its base says."""

    def normalize(self, scores: Scores) -> Scores:
        return normalize_by_maximum(scores)


class OverridingReversed(Local):
    """The same the other way round."""

    def normalize(self, scores: Scores) -> Scores:
        return normalize_by_maximum(scores, reverse=True)


class Signing(Passes):
    """Looks at other nodes as well."""

    depends_on = Scope.CLUSTER


class Plain(ScorePlugin):
    """Declares nothing; its scores are 0..100."""

    def score_node(self, pod: Pod, node: Node) -> float:
        return 50


class Binding(BindPlugin):
    """Has neither verdicts nor scores."""

    async def post_bind(self, binding: Any) -> None:
        """Do nothing."""


def listed(kind: type[Plugin]) -> pb.Plugin:
    """Return how a service lists a plugin."""
    return describe_plugin(Registry(kind, [kind]), kind.name)


def test_the_wider_scope_is_the_larger() -> None:
    assert sorted(Scope) == [Scope.NODE, Scope.MANIFESTS, Scope.CLUSTER, Scope.ANYTHING]


def test_a_plugin_reads_placements_unless_it_declares_itself_that_it_does_not() -> None:
    class Labels(Passes):
        reads_placements = False

    class Child(Labels):
        """May read more."""

    declared = [kind.reads_placements for kind in (Plain, Labels, Child)]
    assert declared == [True, False, True]
    assert [listed(kind).reads_placements for kind in (Plain, Labels, Child)] == declared
    assert not listed(Binding).reads_placements
    with pytest.raises(TypeError, match=r"^tests/.*: Wrong\.reads_placements must be True or Fal"):
        type("Wrong", (Passes,), {"reads_placements": 1})


def test_a_plugin_that_reads_further_objects_depends_on_more_than_a_node() -> None:
    message = r" reads further objects, so it depends on more than Scope\.NODE: declare Scope\.MAN"
    with pytest.raises(TypeError, match=f"^tests/.*: Reader{message}"):

        class Reader(Passes):
            reads = (ENDED_PODS,)
            depends_on = Scope.NODE

    class Base(Passes):
        reads = (ENDED_PODS,)
        depends_on = Scope.MANIFESTS

    with pytest.raises(TypeError, match=f"^tests/.*: Child{message}"):

        class Child(Base):
            depends_on = Scope.NODE


def test_a_scope_is_one_of_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"^tests/.*: Wrong\.depends_on must be a Scope, not True"):
        type("Wrong", (Passes,), {"depends_on": True})


def test_a_plugin_names_the_fields_that_it_looks_at_itself() -> None:
    class Tolerant(Local):
        depends_on = Scope.NODE
        pod_fields = ("spec.tolerations", "spec.containers[*].image")

    class Blind(Passes):
        depends_on = Scope.CLUSTER
        pod_fields = ()

    class Child(Tolerant):
        depends_on = Scope.NODE

    assert listed(Tolerant).pod_fields.paths == ["spec.tolerations", "spec.containers[*].image"]
    assert listed(Blind).HasField("pod_fields")
    assert not listed(Blind).pod_fields.paths
    assert not listed(Child).HasField("pod_fields")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            ("spec.nodeselector",),
            r"has 'spec.nodeselector', which .*, did you mean `spec.nodeSelector`\?",
        ),
        (("metadata.uid",), "has 'metadata.uid', which is no field of a pod's signature"),
        ("spec.tolerations", "must be None or a tuple of paths, not 'spec.tolerations'"),
        (("spec.tolerations", 7), "must be None or a tuple of paths, not "),
    ],
)
def test_a_plugin_cannot_name_what_is_no_field(fields: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"^tests/.*: Wrong\.pod_fields {message}"):
        type("Wrong", (Passes,), {"pod_fields": fields})


def test_managed_resources_are_not_inherited_as_a_subclass_may_concern_other_pods() -> None:
    class Cards(ScorePlugin):
        managed_resources: ClassVar[tuple[str, ...]] = ("example.com/gpu",)

        def score_node(self, pod: Pod, node: Node) -> float:
            return 0

    class More(Cards):
        pass

    assert (Cards.managed_resources, More.managed_resources) == (("example.com/gpu",), ())


@pytest.mark.parametrize("wrong", ["example.com/gpu", ["example.com/gpu"], (7,), ("",)])
def test_managed_resources_are_a_tuple_of_names(wrong: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^tests/.*: Wrong\.managed_resources must be a tuple of names such"
    ):
        type("Wrong", (ScorePlugin,), {"managed_resources": wrong})


@pytest.mark.parametrize(
    ("kind", "scope"),
    [
        (Local, pb.SCOPE_NODE),
        (Derived, pb.SCOPE_ANYTHING),
        (Comparing, pb.SCOPE_MANIFESTS),
        (Signing, pb.SCOPE_CLUSTER),
        (Plain, pb.SCOPE_ANYTHING),
    ],
)
def test_a_service_lists_what_its_plugins_depend_on(
    kind: type[Plugin], scope: pb.Scope.ValueType
) -> None:
    assert listed(kind).depends_on == scope
    assert scope_from_proto(scope) is kind.depends_on


@pytest.mark.parametrize("scope", [pb.SCOPE_UNSPECIFIED, 99])
def test_what_is_unspecified_or_unknown_depends_on_anything(scope: pb.Scope.ValueType) -> None:
    assert scope_from_proto(scope) is Scope.ANYTHING


@pytest.mark.parametrize(
    ("kind", "normalization"),
    [
        (Plain, pb.NORMALIZATION_NONE),
        (Derived, pb.NORMALIZATION_MAXIMUM),
        (Reversed, pb.NORMALIZATION_REVERSED_MAXIMUM),
        (Overriding, pb.NORMALIZATION_UNSPECIFIED),
        (Signing, pb.NORMALIZATION_UNSPECIFIED),
        (Binding, pb.NORMALIZATION_UNSPECIFIED),
    ],
)
def test_a_service_tells_how_scores_become_0_to_100(
    kind: type[Plugin], normalization: pb.Normalization.ValueType
) -> None:
    assert listed(kind).normalization == normalization


@pytest.mark.parametrize("kind", [Local, Reversed, Overriding])
def test_a_plugin_that_has_its_scores_normalised_has_that_point(kind: type[Plugin]) -> None:
    assert extension_points(kind) == ("Filter", "Score", "NormalizeScore")
    assert extension_points(Plain) == ("Score",)


def scored(plugin: ScorePlugin, points: list[float]) -> dict[str, float]:
    nodes = [make_node(f"n{i}", annotations={"points": repr(p)}) for i, p in enumerate(points)]
    return run_score(plugin, make_pod(), *nodes)


@given(st.lists(st.floats(0, 1e6) | st.integers(0, 9).map(float), max_size=5))
def test_to_declare_a_normalisation_is_to_call_it(points: list[float]) -> None:
    assert scored(Local(), points) == scored(Overriding(), points)
    assert scored(Reversed(), points) == scored(OverridingReversed(), points)


def test_without_normalisation_scores_stay_the_same() -> None:
    raw = np.array([0.5, 100])
    assert Normalization.NONE.apply(raw).tolist() == [0.5, 100]
    assert scored(Local(), [1, 3, 2]) == {"n0": 33, "n1": 100, "n2": 66}
    assert scored(Reversed(), [1, 3, 2]) == {"n0": 67, "n1": 0, "n2": 34}


@pytest.mark.parametrize(
    ("plugin", "name"), [(Local(), "MAXIMUM"), (Reversed(), "REVERSED_MAXIMUM")]
)
def test_a_number_that_cannot_be_normalised_is_blamed_on_the_score(
    plugin: ScorePlugin, name: str
) -> None:
    text = (
        rf"score_node returned -5 for node n0, but Normalization\.{name} takes no number below 0 "
    )
    with pytest.raises(PluginFailedError, match=rf"{text}\(.*test_declarations.py:\d+\)"):
        scored(plugin, [-5, 10])


def test_a_weight_is_a_positive_whole_number() -> None:
    weights: list[Any] = [0, -1, 1.5, True, "2", 2**31]
    for weight in weights:
        with pytest.raises(TypeError, match=r"\.py:\d+: Heavy\.weight must be an int from 1 to"):
            type("Heavy", (Local,), {"weight": weight})


def test_a_service_announces_the_weight_of_a_score_plugin() -> None:
    class Heavy(Local):
        """Counts more."""

        weight = 20

    registry = Registry(ScorePlugin, [Local, Heavy])
    announced = {name: describe_plugin(registry, name).default_weight for name in registry}
    assert announced == {"Local": 1, "Heavy": 20}


def test_a_normalisation_is_one_of_those_that_there_are() -> None:
    with pytest.raises(
        TypeError, match=r"^tests/.*: Wrong\.normalization must be a Normalization, not 'max"
    ):

        class Wrong(ScorePlugin):
            normalization = "maximum"  # type: ignore[assignment]

            def score_node(self, pod: Pod, node: Node) -> float:
                return 1
