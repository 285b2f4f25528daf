"""Translates the Policy of kube-scheduler before 1.23 into its configuration of today.

The result does what the Policy did: the same filters, the same scores with the same weights, and
the same extenders. Reading finds all mistakes about predicates and priorities at once. Extenders
pass as they are, but for what is spelt differently today: kube-scheduler checks them at its start.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import yaml
from msgspec import Meta

from cli.shared.manifests import without_nulls
from moorage.errors import suggestion
from moorage.units.durations import format_duration
from moorage_host.policy import read
from moorage_host.policy.checks import Problem, child, find_problems
from moorage_host.policy.yaml_lines import Tree, read_tree

Object = dict[str, Any]

Strategy: TypeAlias = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]

MANDATORY = ("NodeUnschedulable", "TaintToleration")
"""Filters that ran with every Policy, listed or not."""

FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
"""The filters that predicates became, in the order in which kube-scheduler runs them.

Filters that came after the Policy (DynamicResources, for one) are none of its business: they stay.
"""

SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
"""The scores that priorities became, in the order in which kube-scheduler runs them."""

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "GeneralPredicates": ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""The filters that a predicate became."""

PRIORITIES: Mapping[str, str | None] = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "EqualPriority": None,
    "NodePreferAvoidPodsPriority": None,
    "ResourceLimitsPriority": None,
}
"""The score that a priority became; None: kube-scheduler has none any more."""

STRATEGIES: Mapping[str, Strategy] = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
}

SPREADING = frozenset({"SelectorSpreadPriority", "ServiceSpreadingPriority"})
"""They spread pods of Services and controllers without being asked by the pod."""

_SPREAD = (
    "its system default constraints spread pods of Services and controllers alike, over hosts and "
    "zones, by another formula"
)

PRIORITY_REMARKS: Mapping[str, str] = {
    "SelectorSpreadPriority": _SPREAD,
    "ServiceSpreadingPriority": _SPREAD,
    "EqualPriority": "it gave every node the same",
    "NodePreferAvoidPodsPriority": (
        "removed in Kubernetes 1.24: taint the nodes with effect PreferNoSchedule instead"
    ),
    "ResourceLimitsPriority": "removed in Kubernetes 1.20",
}

API_VERSION = "kubescheduler.config.k8s.io/v1"

_Name = Annotated[str, Meta(min_length=1, title="a name")]
_Weight = Annotated[int, Meta(ge=1, le=2**31 - 1, title="an integer from 1 to 2147483647")]
_Percent = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the Policy."""


class _Predicate(_Part, frozen=True, kw_only=True):
    """A rule for nodes; one of the user's own has an argument, by what it does."""

    name: _Name
    argument: dict[str, Object] = {}


class _Priority(_Part, frozen=True, kw_only=True):
    """A score for nodes; one of the user's own has an argument, by what it does."""

    name: _Name
    weight: _Weight
    argument: dict[str, Object] = {}


class _Policy(_Part, frozen=True, kw_only=True):
    """The whole document; None is what kube-scheduler did by default."""

    api_version: Literal["v1", "kubescheduler.config.k8s.io/v1"]
    kind: Literal["Policy"]
    predicates: tuple[_Predicate, ...] | None = None
    priorities: tuple[_Priority, ...] | None = None
    extenders: tuple[Object, ...] = ()
    hard_pod_affinity_symmetric_weight: _Percent = 0
    always_check_all_predicates: bool = False


def convert(file: Path, scheduler_name: str) -> tuple[str, list[str]]:
    """Translate a Policy in JSON or YAML.

    Args:
        file: The Policy.
        scheduler_name: The name of the profile.

    Returns:
        The KubeSchedulerConfiguration in YAML; what was changed or dropped and why, in the order of
        the Policy's lines.

    Raises:
        ConfigurationError: The Policy cannot be read, or one line for each mistake in it.
    """
    policy, tree = _read(file)
    plan = _Plan(hard_affinity=policy.hard_pod_affinity_symmetric_weight)
    plan.take_predicates(policy.predicates)
    plan.take_priorities(policy.priorities)
    if policy.always_check_all_predicates:
        text = "dropped: kube-scheduler stops at the first filter that rejects a node"
        plan.notes.append(("alwaysCheckAllPredicates", text))
    if plan.hard_affinity:
        text = "became hardPodAffinityWeight of InterPodAffinity"
        plan.notes.append(("hardPodAffinitySymmetricWeight", text))
    profile: Object = {"schedulerName": scheduler_name}
    if plugins := _plugins(plan):
        profile["plugins"] = plugins
    if arguments := list(_arguments(plan)):
        profile["pluginConfig"] = arguments
    document: Object = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    extenders = [_extender(plan, each, index) for index, each in enumerate(policy.extenders)]
    if extenders:
        plan.notes.append(("extenders", "percentageOfNodesToScore is 100: extenders see all nodes"))
        document |= {"percentageOfNodesToScore": 100, "extenders": extenders}
    notes = sorted(plan.notes, key=lambda note: tree.line(note[0]))
    lines = [f"{tree.where(path)}: {text}" for path, text in notes]
    return yaml.safe_dump(document, sort_keys=False), lines


def _read(path: Path) -> tuple[_Policy, Tree]:
    tree = read_tree(read(path), str(path))
    value = without_nulls(tree.value)
    tree.refuse(tree.problems + find_problems(value, _Policy, ""))
    policy = msgspec.convert(value, _Policy)
    tree.refuse(list(_unknown_names(policy)))
    return policy, tree


def _unknown_names(policy: _Policy) -> Iterator[Problem]:
    known: Sequence[tuple[str, Sequence[_Predicate | _Priority], Collection[str]]] = (
        ("predicates", policy.predicates or (), PREDICATES),
        ("priorities", policy.priorities or (), PRIORITIES),
    )
    for part, listed, names in known:
        kind = "predicate" if part == "predicates" else "priority"
        for index, each in enumerate(listed):
            if not each.argument and each.name not in names:
                near = suggestion(each.name, names)
                hint = near or f"; a {kind} of your own needs an argument"
                path = child(part, index)
                yield Problem(f"{path}.name", f"unknown {kind} `{each.name}`{hint}")


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What a Policy asks for, in today's names.

    Attributes:
        filters: The filters that run; None for the default ones.
        scores: Weights by plugin; None for the default ones.
        strategy: The strategy of NodeResourcesFit, if the Policy asks for one.
        ratio: The arguments of the strategy RequestedToCapacityRatio, as the Policy has them.
        spreads: Pods are spread without asking for it.
        labels: Which labels all nodes must have, or must not have, as the Policy has them.
        hard_affinity: The weight of required pod affinity; 0 for the default.
        notes: What was changed or dropped: a path in the Policy, and why.
    """

    filters: set[str] | None = None
    scores: dict[str, int] | None = None
    strategy: Strategy | None = None
    ratio: Object | None = None
    spreads: bool = False
    labels: list[Object] = field(default_factory=list)
    hard_affinity: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)

    def runs(self, plugin: str) -> bool:
        """Return whether a plugin filters or scores."""
        filters = self.filters is None or plugin in self.filters
        return filters or self.scores is None or plugin in self.scores

    def take_predicates(self, predicates: tuple[_Predicate, ...] | None) -> None:
        """Work out the filters."""
        if predicates is None:
            self.notes.append(("predicates", "absent: the default filters of today run"))
            return
        listed: set[str] = set()
        for index, predicate in enumerate(predicates):
            listed.update(self._filters_of(predicate, child("predicates", index)))
        self.filters = listed | set(MANDATORY)
        if added := [name for name in MANDATORY if name not in listed]:
            text = f"added {' and '.join(added)}: they always ran, and do"
            self.notes.append(("predicates", text))
        if off := [name for name in FILTERS if name not in self.filters]:
            text = f"not listed, so they are off, as they were: {', '.join(off)}"
            self.notes.append(("predicates", text))

    def _filters_of(self, predicate: _Predicate, path: str) -> tuple[str, ...]:
        if (labels := predicate.argument.get("labelsPresence")) is not None:
            self.labels.append(labels)
            text = (
                "became NodeAffinity with addedAffinity; it also keeps pods to their nodeSelector"
            )
            self.notes.append((path, f"{predicate.name} (labelsPresence) {text}"))
            return ("NodeAffinity",)
        if predicate.argument:
            text = "dropped: removed in Kubernetes 1.22; give the pods podAffinity"
            self.notes.append((path, f"{predicate.name} (serviceAffinity) {text}"))
            return ()
        filters = PREDICATES[predicate.name]
        self.notes.append((path, f"{predicate.name} became {', '.join(filters)}"))
        return filters

    def take_priorities(self, priorities: tuple[_Priority, ...] | None) -> None:
        """Work out the scores and their weights."""
        if priorities is None:
            self.spreads = True
            text = "absent: the default scores run with today's weights, which differ"
            self.notes.append(("priorities", text))
            return
        self.scores = {}
        for index, priority in enumerate(priorities):
            plugin, text = self._score_of(priority)
            path = child("priorities", index)
            self.notes.append((path, f"{priority.name} {text}"))
            if plugin:
                before = self.scores.get(plugin, 0)
                self.scores[plugin] = max(before, priority.weight)
                if before:
                    text = f"{plugin} is there already: the larger weight counts"
                    self.notes.append((path, text))

    def _score_of(self, priority: _Priority) -> tuple[str | None, str]:
        """Return the plugin that a priority became, if any, and what to say of it."""
        argument, name = priority.argument, priority.name
        if (ratio := argument.get("requestedToCapacityRatioArguments")) is not None:
            self.ratio = ratio
            return self._fit("RequestedToCapacityRatio")
        if argument:
            return None, (
                "dropped: removed in Kubernetes 1.22; give the pods preferred node affinity or "
                "topologySpreadConstraints"
            )
        self.spreads = self.spreads or name in SPREADING
        plugin, remark = PRIORITIES[name], PRIORITY_REMARKS.get(name)
        because = f": {remark}" if remark else ""
        if plugin is None:
            return None, f"dropped{because}"
        if strategy := STRATEGIES.get(name):
            return self._fit(strategy)
        return plugin, f"became the score of {plugin}{because}"

    def _fit(self, strategy: Strategy) -> tuple[str | None, str]:
        if self.strategy not in (None, strategy):
            return (
                None,
                f"dropped: NodeResourcesFit has one strategy, and {self.strategy} came first",
            )
        self.strategy = strategy
        return (
            "NodeResourcesFit",
            f"became the score of NodeResourcesFit with the strategy {strategy}",
        )


def _plugins(plan: _Plan) -> Object:
    """Return what differs from the default plugins: those that came later stay as they are."""
    known = dict.fromkeys((*FILTERS, *SCORES))
    unused = [name for name in known if not plan.runs(name)]
    filters = plan.filters if plan.filters is not None else set(FILTERS)
    scores = plan.scores if plan.scores is not None else dict.fromkeys(SCORES, 0)
    no_filters = [name for name in FILTERS if name not in filters and name not in unused]
    no_scores = [name for name in SCORES if name not in scores and name not in unused]
    weights = [{"name": name, "weight": weight} for name, weight in scores.items() if weight]
    sets = {
        "multiPoint": _disabled(unused),
        "preFilter": _disabled(no_filters),
        "filter": _disabled(no_filters),
        "preScore": _disabled(no_scores),
        "score": _disabled(no_scores) | ({"enabled": weights} if weights else {}),
    }
    return {point: changes for point, changes in sets.items() if changes}


def _disabled(names: list[str]) -> Object:
    return {"disabled": [{"name": name} for name in names]} if names else {}


def _arguments(plan: _Plan) -> Iterator[Object]:
    """Yield a pluginConfig entry for each plugin whose arguments are not the default ones."""
    if plan.strategy:
        scoring: Object = {"type": plan.strategy}
        if plan.ratio and plan.strategy == "RequestedToCapacityRatio":
            listed = plan.ratio.get("resources") or ()
            given = {each["name"]: each.get("weight") or 1 for each in listed}
            weights = given or {"cpu": 1, "memory": 1}
            scoring["resources"] = [{"name": n, "weight": w} for n, w in weights.items()]
            scoring["requestedToCapacityRatio"] = {"shape": plan.ratio.get("shape", [])}
        yield _config("NodeResourcesFit", scoringStrategy=scoring)
    if plan.runs("PodTopologySpread"):
        yield _config("PodTopologySpread", defaultingType="System" if plan.spreads else "List")
    if plan.hard_affinity:
        yield _config("InterPodAffinity", hardPodAffinityWeight=plan.hard_affinity)
    if plan.labels:
        required = [
            {"key": label, "operator": "Exists" if each.get("presence") else "DoesNotExist"}
            for each in plan.labels
            for label in each.get("labels") or ()
        ]
        terms = {"nodeSelectorTerms": [{"matchExpressions": required}]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        yield _config("NodeAffinity", addedAffinity=affinity)


def _config(plugin: str, **arguments: object) -> Object:
    return {"name": plugin, "args": arguments}


def _extender(plan: _Plan, given: Object, index: int) -> Object:
    path = f"extenders[{index}]"
    result = {name: value for name, value in given.items() if value}
    if "enableHttps" in given:
        https = result.pop("enableHttps", False)
        result |= {"enableHTTPS": True} if https else {}
        plan.notes.append((f"{path}.enableHttps", "is spelt enableHTTPS now"))
    if isinstance(timeout := result.get("httpTimeout"), int):
        result["httpTimeout"] = format_duration(timeout / 1e9)
        text = f"nanoseconds became a duration: {result['httpTimeout']}"
        plan.notes.append((f"{path}.httpTimeout", text))
    if result.get("filterVerb") and not result.get("nodeCacheCapable"):
        text = "with a filterVerb, kube-scheduler 1.33 and later then scores every node as empty"
        plan.notes.append(
            (path, f"nodeCacheCapable is false: {text} (kubernetes/kubernetes#141781)")
        )
    if not plan.runs("NodeResourcesFit") and "managedResources" in result:
        # kube-scheduler would not start: it looks for the arguments of NodeResourcesFit.
        result["managedResources"] = [{"name": each["name"]} for each in result["managedResources"]]
        text = "ignoredByScheduler dropped: NodeResourcesFit, which counts resources, does not run"
        plan.notes.append((f"{path}.managedResources", text))
    return result
