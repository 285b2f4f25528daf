"""The score plugins that come with the service; the policy decides which of them run."""

from services.scorer.plugins.equal import Equal
from services.scorer.plugins.image_score import ImageScore
from services.scorer.plugins.in_tree.image_locality import ImageLocality
from services.scorer.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from services.scorer.plugins.in_tree.node_affinity import NodeAffinity
from services.scorer.plugins.in_tree.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from services.scorer.plugins.in_tree.node_resources_least_allocated import (
    NodeResourcesLeastAllocated,
)
from services.scorer.plugins.in_tree.node_resources_most_allocated import NodeResourcesMostAllocated
from services.scorer.plugins.in_tree.pod_topology_spread import PodTopologySpread
from services.scorer.plugins.in_tree.requested_to_capacity_ratio import RequestedToCapacityRatio
from services.scorer.plugins.in_tree.taint_toleration import TaintToleration
from services.scorer.plugins.load.congestion_factor import CongestionFactor
from services.scorer.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from services.scorer.plugins.load.low_risk_over_commitment import LowRiskOverCommitment
from services.scorer.plugins.load.network_traffic import NetworkTraffic
from services.scorer.plugins.load.safe_balance import SafeBalance
from services.scorer.plugins.load.safe_overload import SafeOverload
from services.scorer.plugins.load.target_load_packing import TargetLoadPacking
from services.scorer.plugins.node_cost import NodeCost
from services.scorer.plugins.node_metadata import NodeMetadata
from services.scorer.plugins.pigeon_holing import PigeonHoling

BUILT_INS = (
    TaintToleration,
    NodeAffinity,
    NodeResourcesLeastAllocated,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NetworkTraffic,
    TargetLoadPacking,
    LoadVariationRiskBalancing,
    LowRiskOverCommitment,
    SafeOverload,
    SafeBalance,
    CongestionFactor,
    PigeonHoling,
    PodTopologySpread,
    InterPodAffinity,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
    Equal,
    ImageScore,
    NodeMetadata,
    NodeCost,
)
