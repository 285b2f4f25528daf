"""What plugins declare of themselves, so that others can cache their answers."""

from typing import Any, ClassVar

import numpy as np
import pytest

from moorage import (
    ENDED_PODS,
    STATEFUL_SETS,
    BindPlugin,
    Node,
    Normalization,
    ObjectKind,
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


def test_a_plugin_reads_placements_unless_it_declares_itself_that_it_does_not() -> None:
    class Labels(Passes):
        reads_placements = False

    class Child(Labels):
        """May read more."""

    declared = [kind.reads_placements for kind in (Plain, Labels, Child)]
    assert declared == [True, False, True]
    assert [listed(kind).reads_placements for kind in (Plain, Labels, Child)] == declared
    assert not listed(Binding).reads_placements


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


def test_managed_resources_are_not_inherited_as_a_subclass_may_concern_other_pods() -> None:
    class Cards(ScorePlugin):
        managed_resources: ClassVar[tuple[str, ...]] = ("example.com/gpu",)

        def score_node(self, pod: Pod, node: Node) -> float:
            return 0

    class More(Cards):
        pass

    assert (Cards.managed_resources, More.managed_resources) == (("example.com/gpu",), ())


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


def test_a_service_announces_the_weight_of_a_score_plugin() -> None:
    class Heavy(Local):
        """Counts more."""

        weight = 20

    registry = Registry(ScorePlugin, [Local, Heavy])
    announced = {name: describe_plugin(registry, name).default_weight for name in registry}
    assert announced == {"Local": 1, "Heavy": 20}


A_TUPLE = "must be None or a tuple of paths, not "
NAMES = "must be a tuple of names such"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("reads_placements", 1, "must be True or False"),
        ("depends_on", True, "must be a Scope, not True"),
        ("normalization", "maximum", "must be a Normalization, not 'max"),
        *(("weight", weight, "must be an int from 1 to") for weight in (0, 1.5, True, "2", 2**31)),
        *(("managed_resources", names, NAMES) for names in ("a/gpu", ["a/gpu"], (7,), ("",))),
        (
            "pod_fields",
            ("spec.nodeselector",),
            r"has 'spec.nodeselector', which .*, did you mean `spec.nodeSelector`\?",
        ),
        ("pod_fields", ("metadata.uid",), "has 'metadata.uid', which is no field of a pod's sig"),
        ("pod_fields", "spec.tolerations", f"{A_TUPLE}'spec.tolerations'"),
        ("pod_fields", ("spec.tolerations", 7), A_TUPLE),
        *(
            ("reads", reads, "must be a tuple of ObjectKind")
            for reads in (STATEFUL_SETS, ("statefulsets",), [STATEFUL_SETS])
        ),
        (
            "reads",
            (ObjectKind("v1", "configmaps", label_selector="tier in spot"),),
            "has configmaps .*: label selector .*, char",
        ),
        (
            "reads",
            (ObjectKind("v1", "configmaps", field_selector="metadata.name"),),
            "has configmaps .*: field selector .*, char",
        ),
    ],
)
def test_what_a_plugin_declares_is_checked(name: str, value: object, problem: str) -> None:
    with pytest.raises(TypeError, match=rf"^tests/.*: Wrong\.{name} {problem}"):
        type("Wrong", (Local,), {name: value})
