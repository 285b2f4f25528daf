"""Built-in plugins keep to the scope and the fields of pods that they declare."""

import re
from functools import partial
from typing import Any

from moorage import Scope
from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.filters.pod_topology_spread import PodTopologySpread
from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.in_tree.scores.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.in_tree.scores.resources import ResourceSpec
from moorage.in_tree.shared import DefaultConstraint
from services.filter.plugins import BUILT_INS as FILTERS
from services.filter.plugins.license_seats import LicenseSeats
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from services.scorer.plugins import BUILT_INS as SCORERS
from services.scorer.plugins.node_metadata import NodeMetadata
from tests.clusters import GPU
from tests.locality import (
    LocalPlugin,
    assert_local,
    check_locality,
    check_signing,
    found_out,
    marked,
    without_each_field,
)

Kinds = list[type[LocalPlugin]]
BUILT_INS: Kinds = [*FILTERS, *SCORERS]
BY_OWNER = DefaultConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
RESOURCES = tuple(
    ResourceSpec(name=name, weight=weight) for name, weight in (("cpu", 3), ("memory", 1), (GPU, 2))
)
ARGS: dict[type[LocalPlugin], Any] = {
    PodTopologySpread: {"default_constraints": (BY_OWNER,), "defaulting_type": "List"},
    NodeGroup: {"label": "zone"},
    OneNodePerPipelineRun: {"label_key": "app", "isolation_strategy": "isolateAlways"},
    LicenseSeats: {"label_key": "app", "other_seats": 1, "namespaced": True},
    NodeMetadata: {"metadata_key": "size", "metadata_source": "Label"},
    **{
        kind: {"resources": RESOURCES}
        for kind in SCORERS
        if "resources" in kind.Args.__struct_fields__
    },
}


def made(kind: type[LocalPlugin], **args: Any) -> LocalPlugin:
    """Make a plugin with arguments that have it look at what random clusters have."""
    return kind(kind.Args(**{**ARGS.get(kind, {}), **args}))


def of_scope(scope: Scope) -> Kinds:
    return [kind for kind in BUILT_INS if kind.depends_on is scope]


LOCAL = [*of_scope(Scope.NODE), *of_scope(Scope.MANIFESTS)]
SCORES_OF_OTHERS = [
    kind
    for kind in SCORERS
    if kind.name in {"InterPodAffinity", "PigeonHoling", "PodTopologySpread"}
]


WITH_ARGUMENTS = (
    partial(made, NodeResourcesFit, ignored_resources=(GPU,)),
    partial(made, NodeResourcesBalancedAllocation, form="older"),
)


def test_each_depends_on_what_it_says() -> None:
    names = {scope: {kind.name for kind in of_scope(scope)} for scope in Scope}
    assert names[Scope.MANIFESTS] == {"ImageLocality", "NodeResourcesFit"}
    cluster = {"InterPodAffinity", "LicenseSeats", "OneNodePerPipelineRun", "PodTopologySpread"}
    assert names[Scope.CLUSTER] == cluster
    assert names[Scope.ANYTHING] == {
        "CongestionFactor",
        "Gang",
        "InterPodAffinity",
        "LoadVariationRiskBalancing",
        "LowRiskOverCommitment",
        "MaintenanceWindows",
        "NetworkTraffic",
        "NodeCost",
        "PigeonHoling",
        "PodTopologySpread",
        "SafeBalance",
        "SafeOverload",
        "StatefulSetZone",
        "TargetLoadPacking",
    }


def test_their_answers_depend_on_the_node_and_the_named_fields_of_the_pod_alone() -> None:
    check_locality(*(partial(made, kind) for kind in LOCAL), *WITH_ARGUMENTS)
    check_signing(*(partial(made, kind) for kind in of_scope(Scope.CLUSTER)))
    assert all(kind.pod_fields is not None for kind in (*LOCAL, *of_scope(Scope.CLUSTER)))


def test_those_that_declare_too_little_are_found_out() -> None:
    without = without_each_field(*map(made, (*LOCAL, *of_scope(Scope.CLUSTER))))
    others = (PodTopologySpread, InterPodAffinity, *SCORES_OF_OTHERS, ImageLocality)
    on_nodes = {f"{each} as NODE": (marked(each), assert_local) for each in others}
    on_manifests = {
        f"{each} as MANIFESTS": (marked(each, Scope.MANIFESTS), assert_local)
        for each in SCORES_OF_OTHERS
    }
    messages = found_out(without | on_nodes | on_manifests)
    assert messages.keys() == without.keys() | on_nodes.keys() | on_manifests.keys()
    for name in on_nodes:
        assert re.match(
            r"Marked depends on more than Scope\.NODE: its (verdict|score)", messages[name]
        )
    for name in on_manifests:
        assert messages[name].endswith("if the other nodes have no pods")
