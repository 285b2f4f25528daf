"""The arguments that kube-scheduler's in-tree plugins take in `pluginConfig`.

kube-scheduler reads them as strictly as the rest. It takes arguments of plugins that it does not
know, and of those that have none, without a look.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from moorage.errors import suggestion
from moorage.units.durations import parse_duration
from moorage_host.kube_scheduler.configuration.parts import (
    ConfigurationPart,
    Duration,
    Int32,
    Int64,
    label_problem,
)
from moorage_host.kube_scheduler.configuration.selectors import (
    AddedAffinity,
    NodeSelectorRequirement,
)
from moorage_host.policy.checks import Problem, child

SHAPE_SINCE = 37
"""The minor version since which VolumeBinding has a shape without a feature gate."""

STRICT_STRATEGY_SINCE = 36
"""The minor version since which only the strategy RequestedToCapacityRatio may have a shape."""

_Percentage = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]


class PluginArguments(ConfigurationPart, frozen=True, omit_defaults=True):
    """Arguments of one plugin, with the head that names their kind."""

    api_version: str = ""
    kind: str = ""

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what kube-scheduler refuses beside wrong types."""
        del path, minor
        yield from ()


class UtilizationShapePoint(ConfigurationPart, frozen=True):
    """A point of a function from use to score."""

    utilization: Int32 = 0
    score: Int32 = 0


class WeightedResource(ConfigurationPart, frozen=True):
    """A resource that counts in a score; weight 0 stands for 1."""

    name: str = ""
    weight: Int64 = 1

    def __post_init__(self) -> None:
        """Take the default for a weight of 0, as kube-scheduler does."""
        if self.weight == 0:
            msgspec.structs.force_setattr(self, "weight", 1)


class DefaultPreemptionArgs(PluginArguments, frozen=True):
    """How many nodes are looked at for preemption."""

    min_candidate_nodes_percentage: _Percentage = 10
    min_candidate_nodes_absolute: Annotated[
        int, Meta(ge=0, le=2**31 - 1, title="an integer that is not negative")
    ] = 100

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield that there is no candidate."""
        del minor
        if not (self.min_candidate_nodes_percentage or self.min_candidate_nodes_absolute):
            names = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")
            for name, other in (names, reversed(names)):
                yield Problem(f"{path}.{name}", f"must not be 0 where {other} is 0")


class InterPodAffinityArgs(PluginArguments, frozen=True):
    """How the affinities of pods that already run count."""

    hard_pod_affinity_weight: _Percentage = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArguments, frozen=True):
    """An affinity that all pods of the profile have."""

    added_affinity: AddedAffinity = AddedAffinity()

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what is wrong with the terms."""
        del minor
        added = self.added_affinity
        place = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(added.required.node_selector_terms):
            yield from term.problems(child(f"{place}.nodeSelectorTerms", index))
        place = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        for index, preferred in enumerate(added.preferred):
            if preferred.weight:
                where = child(place, index)
                yield from preferred.preference.problems(f"{where}.preference")


class NodeResourcesBalancedAllocationArgs(PluginArguments, frozen=True):
    """The resources whose use is to be balanced."""

    resources: tuple[WeightedResource, ...] = ()

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield resources that are there twice, and weights."""
        del minor
        seen = set[str]()
        for index, resource in enumerate(self.resources):
            where = child(f"{path}.resources", index)
            if resource.name in seen:
                yield Problem(f"{where}.name", f'"{resource.name}" is there already')
            if resource.weight != 1:
                yield Problem(f"{where}.weight", f"must be 1, got {resource.weight}")
            seen.add(resource.name)


class CapacityRatio(ConfigurationPart, frozen=True, omit_defaults=True):
    """A function from use to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]

RATIO: StrategyType = "RequestedToCapacityRatio"

STRATEGIES: tuple[StrategyType, ...] = get_args(StrategyType)


class ScoringStrategy(ConfigurationPart, frozen=True, omit_defaults=True):
    """How NodeResourcesFit scores."""

    type: str = ""
    resources: tuple[WeightedResource, ...] = ()
    requested_to_capacity_ratio: CapacityRatio | None = None

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what is wrong with the strategy."""
        if self.type not in STRATEGIES:
            near = suggestion(self.type, STRATEGIES)
            choices = f"must be {', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}"
            yield Problem(f"{path}.type", f'{choices}, got "{self.type}"{near}')
        for index, resource in enumerate(self.resources):
            if not 0 < resource.weight <= _MOST_WEIGHT:
                where = f"{child(f'{path}.resources', index)}.weight"
                yield Problem(where, f"must be from 1 to {_MOST_WEIGHT}, got {resource.weight}")
        ratio, where = self.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
        if ratio is None:
            if self.type == RATIO:
                yield Problem(where, f"must be given with the type {RATIO}")
        elif self.type != RATIO and minor >= STRICT_STRATEGY_SINCE:
            yield Problem(where, f"must not be given with another type than {RATIO}")
        else:
            yield from _shape_problems(ratio.shape, f"{where}.shape")


class NodeResourcesFitArgs(PluginArguments, frozen=True):
    """Which resources count, and how they score.

    kube-scheduler checks them where it builds the plugin: they may be wrong where it does not run.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield names that are none, and what is wrong with the strategy."""
        for index, name in enumerate(self.ignored_resources):
            if problem := label_problem(name):
                yield Problem(child(f"{path}.ignoredResources", index), problem)
        for index, group in enumerate(self.ignored_resource_groups):
            where = child(f"{path}.ignoredResourceGroups", index)
            if "/" in group:
                yield Problem(where, f'"{group}" must be a domain alone, without `/`')
            elif problem := label_problem(group):
                yield Problem(where, problem)
        if self.scoring_strategy is not None:
            yield from self.scoring_strategy.problems(f"{path}.scoringStrategy", minor)


class PodSelector(ConfigurationPart, frozen=True, omit_defaults=True):
    """A selector of pods, which default constraints must not have."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()


class SpreadConstraint(ConfigurationPart, frozen=True, omit_defaults=True):
    """A default constraint for pods that have none."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: PodSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Forget the keys: kube-scheduler replaces the selector that they would be in."""
        msgspec.structs.force_setattr(self, "match_label_keys", ())

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield what is wrong with it."""
        if self.max_skew <= 0:
            yield Problem(f"{path}.maxSkew", f"must be positive, got {self.max_skew}")
        if problem := label_problem(self.topology_key):
            yield Problem(f"{path}.topologyKey", problem)
        if self.when_unsatisfiable not in ACTIONS:
            near = suggestion(self.when_unsatisfiable, ACTIONS)
            got = f'got "{self.when_unsatisfiable}"{near}'
            yield Problem(f"{path}.whenUnsatisfiable", f"must be {' or '.join(ACTIONS)}, {got}")
        if self.label_selector is not None:
            message = "must not be given: kube-scheduler takes each pod's own"
            yield Problem(f"{path}.labelSelector", message)


ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


class PodTopologySpreadArgs(PluginArguments, frozen=True):
    """How pods are spread that do not say it."""

    default_constraints: tuple[SpreadConstraint, ...] = ()
    defaulting_type: Literal["", "System", "List"] = ""

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what is wrong with the constraints."""
        del minor
        if self.default_constraints and self.defaulting_type != "List":
            yield Problem(f"{path}.defaultingType", "must be List where there are constraints")
        seen = set[tuple[str, str]]()
        for index, constraint in enumerate(self.default_constraints):
            where = child(f"{path}.defaultConstraints", index)
            yield from constraint.problems(where)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield Problem(where, f"a constraint for {' and '.join(pair)} is there already")
            seen.add(pair)


class VolumeBindingArgs(PluginArguments, frozen=True):
    """How long volumes may take to be bound."""

    bind_timeout_seconds: Annotated[
        int, Meta(ge=0, le=2**63 - 1, title="seconds, an integer that is not negative")
    ] = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what is wrong with the shape."""
        if self.shape is None or (not self.shape and minor >= SHAPE_SINCE):
            return
        if minor < SHAPE_SINCE:
            message = f"kube-scheduler 1.{minor} does not take it without a feature gate"
            yield Problem(f"{path}.shape", message)
        else:
            yield from _shape_problems(self.shape, f"{path}.shape")


class DynamicResourcesArgs(PluginArguments, frozen=True):
    """How long the parts of an allocation may take."""

    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None

    def problems(self, path: str, minor: int) -> Iterator[Problem]:
        """Yield what is no duration, or too short."""
        del minor
        limits = (
            ("filterTimeout", self.filter_timeout, 0),
            ("bindingTimeout", self.binding_timeout, 1),
        )
        for name, text, least in limits:
            if text is None:
                continue
            try:
                if parse_duration(text) < least:
                    yield Problem(f"{path}.{name}", f"must be at least {least}s, got {text}")
            except ValueError as error:
                yield Problem(f"{path}.{name}", str(error))


ARGUMENTS: Mapping[str, type[PluginArguments]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
    "DynamicResources": DynamicResourcesArgs,
}
"""The plugins that have arguments."""

DYNAMIC_RESOURCES_SINCE = 34
"""The minor version since which DynamicResources has arguments."""

_MOST_WEIGHT = 100
_MOST_UTILIZATION = 100
_MOST_SCORE = 10


def arguments_type(plugin: str, minor: int) -> type[PluginArguments] | None:
    """Return what the arguments of a plugin are checked against; None if they are not."""
    if plugin == "DynamicResources" and minor < DYNAMIC_RESOURCES_SINCE:
        return None
    return ARGUMENTS.get(plugin)


def _shape_problems(shape: Iterable[UtilizationShapePoint], path: str) -> Iterator[Problem]:
    points = list(shape)
    if not points:
        yield Problem(path, "must have at least one point")
    for index, (before, after) in enumerate(pairwise(points), 1):
        if before.utilization >= after.utilization:
            yield Problem(
                f"{child(path, index)}.utilization", "must be above that of the point before"
            )
            break
    for index, point in enumerate(points):
        where = child(path, index)
        if not 0 <= point.utilization <= _MOST_UTILIZATION:
            message = f"must be from 0 to {_MOST_UTILIZATION}, got {point.utilization}"
            yield Problem(f"{where}.utilization", message)
        if not 0 <= point.score <= _MOST_SCORE:
            yield Problem(f"{where}.score", f"must be from 0 to {_MOST_SCORE}, got {point.score}")
