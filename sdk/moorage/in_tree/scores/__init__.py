"""Score plugins with the rules of kube-scheduler's own."""

from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.in_tree.scores.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.scores.node_affinity import NodeAffinity
from moorage.in_tree.scores.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.in_tree.scores.pod_topology_spread import PodTopologySpread
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.in_tree.scores.taint_toleration import TaintToleration

SCORES = (
    TaintToleration,
    NodeAffinity,
    NodeResourcesLeastAllocated,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    PodTopologySpread,
    InterPodAffinity,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
"""All of them; three are the scoring strategies of kube-scheduler's NodeResourcesFit."""
