"""What runs when the policy says nothing: kube-scheduler's own list, as far as it is ours to run.

Volumes, topology spread and the like stay with kube-scheduler, whose own plugins run before the
extender is asked. Order and weights are those of its default multiPoint set.
"""

from moorage_host.policy.catalogue import Kind
from moorage_host.policy.effective import FailurePolicy
from moorage_host.policy.merge import Entry, EntrySet

DEFAULT_MULTI_POINT = EntrySet(
    enabled=(
        Entry("NodeUnschedulable"),
        Entry("NodeName"),
        Entry("TaintToleration", 3),
        Entry("NodeAffinity", 2),
        Entry("NodePorts"),
        Entry("NodeResourcesFit"),
        Entry("NodeResourcesLeastAllocated", 1),
        Entry("NodeResourcesBalancedAllocation", 1),
        Entry("ImageLocality", 1),
    )
)
"""The default plugins of every profile; those that the catalogue lacks are left out."""

DEFAULT_TIME_BUDGET = 1.0
"""Seconds that a plugin may take in one cycle."""


def default_failure_policy(kind: Kind) -> FailurePolicy:
    """A failing score plugin is neutral; a filter or a bind must not be skipped unasked."""
    return "Ignore" if kind == "score" else "Abort"
