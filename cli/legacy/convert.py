"""Translates the Policy of kube-scheduler before 1.23 into its configuration of today.

The result does what the Policy did: the same filters, the same scores with the same weights, and
the same extenders; kube-scheduler starts with it. Hard rules that have no counterpart are listed
first: without them pods go where they must not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from cli.legacy.extenders import extender_problems, translated
from cli.legacy.names import (
    FILTERS,
    MANDATORY,
    PREDICATES,
    PRIORITIES,
    PRIORITY_REMARKS,
    SCORES,
    SPREADING,
)
from cli.legacy.policy import LegacyPolicy, LegacyPredicate, LegacyPriority, read_policy
from moorage_host.kube_scheduler import find_configuration_problems
from moorage_host.policy.checks import Problem, child

Object = dict[str, Any]

Strategy: TypeAlias = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]

STRATEGIES: Mapping[str, Strategy] = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
}

API_VERSION = "kubescheduler.config.k8s.io/v1"

OLDEST, NEWEST = 30, 37
"""The minor versions of kube-scheduler that must start with the result, and those between."""


def convert(file: Path, scheduler_name: str) -> tuple[str, list[str]]:
    """Translate a Policy in JSON or YAML.

    Args:
        file: The Policy, or a ConfigMap or several documents with it.
        scheduler_name: The name of the profile.

    Returns:
        The KubeSchedulerConfiguration in YAML; what was changed or dropped and why: first the hard
        rules that are lost, then the rest in the order of the Policy's lines.

    Raises:
        ConfigurationError: The Policy cannot be read, or one line for each mistake in it.
    """
    policy, tree = read_policy(file)
    tree.refuse(extender_problems(policy.extenders))
    plan = _Plan(hard_affinity=policy.hard_pod_affinity_symmetric_weight)
    document = _document(policy, plan, scheduler_name)
    tree.refuse(list(_refused(document)))
    notes = sorted(plan.notes, key=lambda note: tree.line(note[0]))
    lines = [f"{tree.where(path)}: {text}" for path, text in (*plan.lost, *notes)]
    return yaml.safe_dump(document, sort_keys=False), lines


def _document(policy: LegacyPolicy, plan: "_Plan", scheduler_name: str) -> Object:
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
    if policy.extenders:
        plan.notes.append(("extenders", "percentageOfNodesToScore is 100: extenders see all nodes"))
        document |= {"percentageOfNodesToScore": 100, "extenders": []}
    for index, given in enumerate(policy.extenders):
        is_counted = plan.runs("NodeResourcesFit") or plan.strategy is not None
        extender, notes = translated(given, child("extenders", index), is_counted=is_counted)
        document["extenders"].append(extender)
        plan.notes += notes
    return document


def _refused(document: Object) -> Iterator[Problem]:
    """Yield what kube-scheduler would refuse of the result, at its place in the Policy."""
    problems = {
        problem: None
        for minor in (OLDEST, NEWEST)
        for problem in find_configuration_problems(document, minor)
    }
    for problem in problems:
        is_same = problem.path.startswith("extenders[")
        yield (
            problem if is_same else Problem("", f"{problem.path} of the result: {problem.message}")
        )


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What a Policy asks for, in today's names.

    Attributes:
        filters: The filters that run; None for the default ones.
        scores: Weights by plugin; None for the default ones.
        strategy: The strategy of NodeResourcesFit, if the Policy asks for one.
        ratio: The weight and the arguments of the heaviest curve of one's own, as they are given.
        spreads: Pods are spread without asking for it.
        labels: Which labels all nodes must have, or must not have, as the Policy has them.
        hard_affinity: The weight of required pod affinity; 0 for the default.
        notes: What was changed or dropped: a path in the Policy, and why.
        lost: The same of hard rules that have no counterpart.
    """

    filters: set[str] | None = None
    scores: dict[str, int] | None = None
    strategy: Strategy | None = None
    ratio: tuple[int, Object] | None = None
    spreads: bool = False
    labels: list[Object] = field(default_factory=list)
    hard_affinity: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)

    def runs(self, plugin: str) -> bool:
        """Return whether a plugin filters or scores."""
        filters = self.filters is None or plugin in self.filters
        return filters or self.scores is None or plugin in self.scores

    def take_predicates(self, predicates: tuple[LegacyPredicate, ...] | None) -> None:
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

    def _filters_of(self, predicate: LegacyPredicate, path: str) -> tuple[str, ...]:
        if (labels := predicate.argument.get("labelsPresence")) is not None:
            self.labels.append(labels)
            text = (
                "became NodeAffinity with addedAffinity; it also keeps pods to their nodeSelector"
            )
            self.notes.append((path, f"{predicate.name} (labelsPresence) {text}"))
            return ("NodeAffinity",)
        if predicate.argument:
            same = _labels_of(predicate.argument)
            text = (
                f"a hard rule is lost: it kept pods of a Service on nodes with the same {same}; "
                f"removed in Kubernetes 1.22: give the pods required podAffinity for {same}"
            )
            self.lost.append((path, f"{predicate.name} (serviceAffinity): {text}"))
            return ()
        filters = PREDICATES[predicate.name]
        self.notes.append((path, f"{predicate.name} became {', '.join(filters)}"))
        return filters

    def take_priorities(self, priorities: tuple[LegacyPriority, ...] | None) -> None:
        """Work out the scores and their weights."""
        if priorities is None:
            self.spreads = True
            text = "absent: the default scores run with today's weights, which differ"
            self.notes.append(("priorities", text))
            return
        self.scores = {}
        strategies: dict[Strategy, int] = {}
        for index, priority in enumerate(priorities):
            path = child("priorities", index)
            if strategy := self._strategy_of(priority):
                strategies[strategy] = strategies.get(strategy, 0) + priority.weight
                text = f"became the score of NodeResourcesFit with the strategy {strategy}"
                self.notes.append((path, f"{priority.name} {text}"))
                continue
            plugin, text = self._score_of(priority)
            self.notes.append((path, f"{priority.name} {text}"))
            if plugin:
                before = self.scores.get(plugin, 0)
                self.scores[plugin] = max(before, priority.weight)
                if before:
                    text = f"{plugin} is there already: the larger weight counts"
                    self.notes.append((path, text))
        self._choose(strategies)

    def _strategy_of(self, priority: LegacyPriority) -> Strategy | None:
        """Return the strategy of NodeResourcesFit that a priority became, if any."""
        ratio = priority.argument.get("requestedToCapacityRatioArguments")
        if ratio is not None:
            if self.ratio is None or priority.weight > self.ratio[0]:
                self.ratio = (priority.weight, ratio)
            return RATIO
        return None if priority.argument else STRATEGIES.get(priority.name)

    def _choose(self, weights: dict[Strategy, int]) -> None:
        """Take the strategy that counts: NodeResourcesFit has one, kube-scheduler had three scores.

        Least and most are nearly the reverse of each other: what remains of both is the heavier one
        with the difference. Beside a curve of one's own the heavier one counts.
        """
        least, most = weights.get("LeastAllocated", 0), weights.get("MostAllocated", 0)
        plain: Strategy = "LeastAllocated" if least > most else "MostAllocated"
        left, ratio = abs(least - most), self.ratio[0] if self.ratio else 0
        if least and most:
            rest = f"{plain} with the difference, {left}, remains" if left else "nothing remains"
            text = f"LeastAllocated {least} and MostAllocated {most} are nearly opposite: {rest}"
            self.notes.append(("priorities", text))
        if ratio and left:
            kept, gone = (RATIO, plain) if ratio >= left else (plain, RATIO)
            text = f"{kept}, the heavier one, remains, and {gone} is dropped"
            self.notes.append(("priorities", f"NodeResourcesFit has one strategy: {text}"))
        if max(ratio, left) and self.scores is not None:
            self.strategy = RATIO if ratio >= left else plain
            self.scores["NodeResourcesFit"] = max(ratio, left)

    def _score_of(self, priority: LegacyPriority) -> tuple[str | None, str]:
        """Return the plugin that a priority became, if any, and what to say of it."""
        argument, name = priority.argument, priority.name
        if argument:
            labels = _labels_of(argument)
            return None, (
                f"dropped, it was about {labels}: removed in Kubernetes 1.22; give the pods "
                f"preferred node affinity or topologySpreadConstraints for {labels}"
            )
        self.spreads = self.spreads or name in SPREADING
        plugin, remark = PRIORITIES[name], PRIORITY_REMARKS.get(name)
        because = f": {remark}" if remark else ""
        if plugin is None:
            return None, f"dropped{because}"
        return plugin, f"became the score of {plugin}{because}"


RATIO: Strategy = "RequestedToCapacityRatio"


def _labels_of(argument: Object) -> str:
    """Return the labels that an argument names, for people."""
    found = []
    for part in argument.values():
        listed = part.get("labels")
        found += listed if isinstance(listed, list) else []
        found += [part["label"]] if "label" in part else []
    words = [f"`{label}`" for label in found]
    return (
        f"label{'s' if len(words) > 1 else ''} {', '.join(words)}"
        if words
        else "label (none is named)"
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
        if plan.ratio and plan.strategy == RATIO:
            ratio = plan.ratio[1]
            listed = ratio.get("resources") or ()
            given = {each["name"]: each.get("weight") or 1 for each in listed}
            weights = given or {"cpu": 1, "memory": 1}
            scoring["resources"] = [{"name": n, "weight": w} for n, w in weights.items()]
            scoring["requestedToCapacityRatio"] = {"shape": ratio.get("shape", [])}
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
