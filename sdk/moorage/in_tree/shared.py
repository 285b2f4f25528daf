"""What the filter and the score plugin of the same kube-scheduler plugin share."""

from typing import Annotated, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from moorage.models import (
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    Taint,
    TopologySpreadConstraint,
)
from moorage.plugin.arguments import Arguments
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated
from moorage.snapshot import Amounts, Nodes
from moorage.snapshot.verdicts import Mask

NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Kubernetes' own resources, in the order in which kube-scheduler lists what is short."""

_NONE: Final = PodAffinity()


class InterPodAffinityArguments(Arguments):
    """How the affinities of pods that already run count in scores; filters do not read it.

    Attributes:
        hard_pod_affinity_weight: The weight of the required affinity of running pods; 0 ignores it.
        ignore_preferred_terms_of_existing_pods: Skip pods that prefer nothing themselves.
    """

    hard_pod_affinity_weight: Annotated[int, Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def pod_affinity(pod: Pod) -> PodAffinity:
    """Return the pods that *pod* wants near it."""
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or _NONE


def pod_anti_affinity(pod: Pod) -> PodAffinity:
    """Return the pods that *pod* wants far from it."""
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or _NONE


Action = Literal["DoNotSchedule", "ScheduleAnyway"]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SPREADING_OWNERS: Final = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""Whose pods the default constraints spread."""

POD_LABELS: Final = frozenset(
    (
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
        "statefulset.kubernetes.io/pod-name",
    )
)
"""Labels in which the pods of one owner differ."""


class DefaultConstraint(Arguments):
    """A constraint for pods that have none of their own; its selector is each pod's."""

    max_skew: Annotated[int, Meta(ge=1)]
    topology_key: Annotated[str, Meta(min_length=1)]
    when_unsatisfiable: Action
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


SYSTEM_DEFAULTS: Final = (
    DefaultConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    DefaultConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)
"""What kube-scheduler itself brings along."""


class SpreadArguments(Arguments):
    """What to do with pods that have no topology spread constraints.

    Attributes:
        default_constraints: Their constraints, if the type is List. They hold for the pods of
            ReplicaSets, ReplicationControllers and StatefulSets, and count pods with the same
            labels (Services are not known here).
        defaulting_type: System is List with maxSkew 3 by hostname and 5 by zone, both
            ScheduleAnyway, and also for nodes without zone.
    """

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    def __post_init__(self) -> None:
        if self.default_constraints and self.defaulting_type == "System":
            raise ValueError("defaultConstraints need defaultingType: List")


def spread_constraints(
    pod: Pod, action: Action, args: SpreadArguments
) -> tuple[TopologySpreadConstraint, ...]:
    """Return the pod's own constraints with this action, or else the default ones.

    Their label selectors are complete: `match_label_keys` are in them.
    """
    own = pod.spec.topology_spread_constraints
    if own:
        return tuple(_complete(c, pod) for c in own if c.when_unsatisfiable == action)
    selector = _default_selector(pod)
    system = args.defaulting_type == "System"
    return tuple(
        TopologySpreadConstraint(
            max_skew=default.max_skew,
            topology_key=default.topology_key,
            label_selector=selector,
            min_domains=default.min_domains,
            node_affinity_policy=default.node_affinity_policy,
            node_taints_policy=default.node_taints_policy,
        )
        for default in (SYSTEM_DEFAULTS if system else args.default_constraints)
        if selector is not None and default.when_unsatisfiable == action
    )


def matching_pods(nodes: Nodes, constraint: TopologySpreadConstraint, pod: Pod) -> Amounts:
    """Return how many pods the constraint of *pod* counts on each node.

    They are of the pod's namespace and not being deleted. As in kube-scheduler, a selector without
    conditions counts none.
    """
    selector = constraint.label_selector
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        selector = None
    term = PodAffinityTerm(label_selector=selector)
    return nodes.count_pods([term], pod.namespace, terminating=False)


def is_eligible(nodes: Nodes, constraint: TopologySpreadConstraint, pod: Pod) -> Mask:
    """Return the pods of which nodes count, by the constraint's inclusion policies."""
    eligible = nodes.verdicts().passed
    if constraint.node_affinity_policy == "Honor":
        eligible &= nodes.required_by(pod)
    if constraint.node_taints_policy == "Honor":
        tolerations = pod.spec.tolerations

        def repels(taints: tuple[Taint, ...] | None) -> bool:
            return untolerated(taints or (), tolerations, DO_NOT_SCHEDULE) is not None

        eligible &= ~nodes.taints().where(repels)
    return eligible


def has_labels(nodes: Nodes, constraints: tuple[TopologySpreadConstraint, ...]) -> Mask:
    """Return which nodes have the topology labels of all constraints."""
    present = nodes.verdicts().passed
    for constraint in constraints:
        present &= ~nodes.label(constraint.topology_key).isin((None,))
    return present


def _complete(constraint: TopologySpreadConstraint, pod: Pod) -> TopologySpreadConstraint:
    selector, labels = constraint.label_selector, pod.labels
    keys = [key for key in constraint.match_label_keys if key in labels]
    if selector is None or not keys:
        return constraint
    same = tuple(Requirement(key=key, operator="In", values=(labels[key],)) for key in keys)
    complete = replace(selector, match_expressions=(*selector.match_expressions, *same))
    return replace(constraint, label_selector=complete)


def _default_selector(pod: Pod) -> LabelSelector | None:
    if pod.owner is None or pod.owner.kind not in SPREADING_OWNERS:
        return None
    labels = {key: value for key, value in pod.labels.items() if key not in POD_LABELS}
    return LabelSelector(match_labels=labels) if labels else None
