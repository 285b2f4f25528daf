"""Keeps pods spread evenly, like the filter of kube-scheduler's plugin of the same name."""

from moorage import SKIP, FilterPlugin, Mask, Nodes, Pod, Preparation, Rejection, Scope, Verdicts
from moorage.in_tree.shared import (
    SpreadArguments,
    has_labels,
    is_eligible,
    matching_pods,
    spread_constraints,
)
from moorage.models import TopologySpreadConstraint
from moorage.rules import matches_labels

SKEWED = Rejection("node(s) didn't match pod topology spread constraints", unresolvable=False)
UNLABELLED = Rejection(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

Constraints = tuple[TopologySpreadConstraint, ...]


class PodTopologySpread(FilterPlugin):
    """Keeps pods off domains that would have too many more matching pods than the emptiest."""

    depends_on = Scope.CLUSTER
    reads_placements = False  # kube-scheduler's own filter sees assumed pods
    pod_fields = (
        "metadata.namespace",
        "metadata.labels",
        "metadata.ownerReferences",
        "spec.topologySpreadConstraints",
        "spec.nodeSelector",
        "spec.affinity.nodeAffinity",
        "spec.tolerations",
    )

    class Args(SpreadArguments):  # noqa: D106 - inherited, as the documentation shows
        pass

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without hard constraints."""
        return None if self._constraints(pod) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes without a label, or in a domain that would exceed the skew."""
        verdicts, constraints = nodes.verdicts(), self._constraints(pod)
        cluster = nodes.cluster
        labelled = has_labels(cluster, constraints)
        for constraint in constraints:
            unlabelled = nodes.label(constraint.topology_key).isin((None,))
            verdicts.reject(unlabelled, UNLABELLED)
            counted = labelled & is_eligible(cluster, constraint, pod)
            verdicts.reject(_skewed(constraint, pod, nodes, cluster, counted), SKEWED)
        return verdicts

    def _constraints(self, pod: Pod) -> Constraints:
        return spread_constraints(pod, "DoNotSchedule", self.args)


def _skewed(
    constraint: TopologySpreadConstraint, pod: Pod, nodes: Nodes, cluster: Nodes, counted: Mask
) -> Mask:
    """Return where matching pods, with this one if it matches itself, exceed the minimum by more.

    The minimum is 0 while there are fewer domains than the constraint asks for.
    """
    column = cluster.label(constraint.topology_key)
    matching = column.sums(matching_pods(cluster, constraint, pod) * counted)
    domains = matching[column.sums(counted) > 0]
    enough = len(domains) >= (constraint.min_domains or 1)
    minimum = domains.min() if enough else 0
    own = matches_labels(constraint.label_selector, pod.labels)
    there = matching[nodes.label(constraint.topology_key).codes]
    skewed: Mask = there + own - minimum > constraint.max_skew
    return skewed
