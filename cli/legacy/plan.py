"""Works out which filters and scores a Policy asks for, with a note for each entry that changes.

Both documents that `cli.legacy.convert` writes follow from the plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cli.legacy.document import LabelsPresence, Policy, Predicate, Priority
from cli.legacy.document import RequestedToCapacityRatio as Ratio
from cli.legacy.names import (
    FILTERS,
    MANDATORY,
    PREDICATE_REMARKS,
    PREDICATES,
    PRIORITIES,
    PRIORITY_REMARKS,
    SPREADING,
    STRATEGIES,
    Strategy,
)
from moorage_host.policy.problems import child

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was changed or dropped: where in the Policy, and why."""

    path: str
    text: str


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a Policy asks for, in today's names.

    Attributes:
        filters: The filters that run; None for the default ones.
        scores: Weights by plugin of kube-scheduler; None for the default ones.
        strategies: Weights by strategy of NodeResourcesFit; the first is kube-scheduler's.
        ratio: The arguments of the strategy RequestedToCapacityRatio.
        equal: The weight of EqualPriority, or 0.
        spreads: Whether pods are spread without asking for it.
        labels: Which labels all nodes must have, or must not have.
        hard_affinity: The weight of required pod affinity; 0 for the default.
        notes: What was changed or dropped.
    """

    filters: set[str] | None = None
    scores: dict[str, int] | None = None
    strategies: dict[Strategy, int] = field(default_factory=dict)
    ratio: Ratio | None = None
    equal: int = 0
    spreads: bool = False
    labels: list[LabelsPresence] = field(default_factory=list)
    hard_affinity: int = 0
    notes: list[Note] = field(default_factory=list)

    def note(self, path: str, text: str) -> None:
        """Add a note about a part of the Policy."""
        self.notes.append(Note(path, text))

    def runs(self, plugin: str) -> bool:
        """Whether a plugin of kube-scheduler filters or scores."""
        filters = self.filters is None or plugin in self.filters
        return filters or self.scores is None or plugin in self.scores


def make_plan(policy: Policy) -> Plan:
    """Return what a Policy asks for."""
    plan = Plan(hard_affinity=policy.hard_pod_affinity_symmetric_weight)
    _predicates(plan, policy.predicates)
    _priorities(plan, policy.priorities)
    if policy.always_check_all_predicates:
        text = "dropped: kube-scheduler stops at the first filter that rejects a node"
        plan.note("alwaysCheckAllPredicates", text)
    _hard_affinity(plan)
    return plan


def _predicates(plan: Plan, predicates: tuple[Predicate, ...] | None) -> None:
    if predicates is None:
        plan.note("predicates", "absent: the default filters run, today's")
        return
    plan.filters = set(MANDATORY)
    listed: set[str] = set()
    for index, predicate in enumerate(predicates):
        listed.update(_predicate(plan, predicate, child("predicates", index)))
    plan.filters |= listed
    if added := [name for name in MANDATORY if name not in listed]:
        plan.note("predicates", f"added {' and '.join(added)}: they always ran, and do")
    if len(predicates) > 1:
        plan.note("predicates", "their order does not count, as ever: kube-scheduler has its own")
    if off := [name for name in FILTERS if name not in plan.filters]:
        plan.note("predicates", f"not listed, so they are off, as they were: {', '.join(off)}")
    if "VolumeBinding" in off:
        text = (
            "VolumeBinding is off: nothing waits for the volumes of a pod; list CheckVolumeBinding"
        )
        plan.note("predicates", f"{text} if your pods have unbound claims")


def _predicate(plan: Plan, predicate: Predicate, path: str) -> tuple[str, ...]:
    argument = predicate.argument
    if argument and argument.labels_presence:
        plan.labels.append(argument.labels_presence)
        text = "became NodeAffinity with addedAffinity, in kube-scheduler only; it also keeps pods"
        plan.note(path, f"{predicate.name} (labelsPresence) {text} to their nodeSelector")
        return ("NodeAffinity",)
    if argument and argument.service_affinity:
        text = "dropped: removed in Kubernetes 1.22; give the pods podAffinity with a topologyKey"
        plan.note(path, f"{predicate.name} (serviceAffinity) {text}")
        return ()
    filters, remark = PREDICATES[predicate.name], PREDICATE_REMARKS.get(predicate.name)
    became = f"{predicate.name} became {', '.join(filters)}"
    plan.note(path, f"{became}: {remark}" if remark else became)
    return filters


def _priorities(plan: Plan, priorities: tuple[Priority, ...] | None) -> None:
    if priorities is None:
        plan.spreads = True
        text = "absent: the default scores run with today's weights, which differ from those then"
        plan.note("priorities", text)
        return
    plan.scores = {}
    for index, priority in enumerate(priorities):
        path = child("priorities", index)
        if priority.argument and any(msgspec.structs.astuple(priority.argument)):
            _own_priority(plan, priority, path)
        else:
            _priority(plan, priority, path)
    if not plan.scores:
        plan.note("priorities", "no score of kube-scheduler runs")


def _priority(plan: Plan, priority: Priority, path: str) -> None:
    name = priority.name
    plugin, remark = PRIORITIES[name], PRIORITY_REMARKS.get(name)
    if name == "EqualPriority":
        plan.equal = priority.weight
    if name in SPREADING:
        plan.spreads = True
    because = f": {remark}" if remark else ""
    if plugin is None:
        plan.note(path, f"{name} dropped{because}")
    elif strategy := STRATEGIES.get(name):
        _fit(plan, priority, strategy, path)
    else:
        plan.note(path, f"{name} became the score of {plugin}{because}")
        _score(plan, plugin, priority, path)


def _own_priority(plan: Plan, priority: Priority, path: str) -> None:
    argument = priority.argument
    assert argument is not None  # noqa: S101 - seen by the caller
    if argument.requested_to_capacity_ratio_arguments:
        plan.ratio = argument.requested_to_capacity_ratio_arguments
        _fit(plan, priority, "RequestedToCapacityRatio", path)
    elif argument.label_preference:
        text = "dropped: removed in Kubernetes 1.22; give the pods preferred node affinity"
        plan.note(path, f"{priority.name} (labelPreference) {text}")
    else:
        text = "dropped: removed in Kubernetes 1.22; give the pods topologySpreadConstraints"
        plan.note(path, f"{priority.name} (serviceAntiAffinity) {text}")


def _fit(plan: Plan, priority: Priority, strategy: Strategy, path: str) -> None:
    first = next(iter(plan.strategies), strategy)
    if first == strategy:
        became = f"became the score of NodeResourcesFit with the strategy {strategy}"
        plan.note(path, f"{priority.name} {became}")
        _score(plan, "NodeResourcesFit", priority, path)
    else:
        text = f"NodeResourcesFit has one strategy, and {first} came first"
        plan.note(path, f"{priority.name} dropped for kube-scheduler: {text}")
    plan.strategies[strategy] = max(priority.weight, plan.strategies.get(strategy, 0))


def _score(plan: Plan, plugin: str, priority: Priority, path: str) -> None:
    assert plan.scores is not None  # noqa: S101 - set by the caller
    before = plan.scores.get(plugin, 0)
    if before:
        plan.note(path, f"{plugin} is there already: the larger weight counts")
    plan.scores[plugin] = max(before, priority.weight)


def _hard_affinity(plan: Plan) -> None:
    path = "hardPodAffinitySymmetricWeight"
    if not plan.hard_affinity:
        return
    plan.note(path, "became hardPodAffinityWeight of InterPodAffinity")
    if plan.scores is not None and "InterPodAffinity" not in plan.scores:
        plan.note(path, "has no effect, nor had it: InterPodAffinityPriority is not listed")


def required_labels(plan: Plan) -> Iterator[Object]:
    """Yield a node selector requirement for each label that nodes must have, or must not have."""
    for labels in plan.labels:
        operator = "Exists" if labels.presence else "DoesNotExist"
        yield from ({"key": label, "operator": operator} for label in labels.labels)
