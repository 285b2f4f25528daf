"""The score plugins that come with the service; the policy decides which of them run."""

from services.scorer.plugins.congestion_factor import CongestionFactor
from services.scorer.plugins.equal import Equal
from services.scorer.plugins.image_locality import ImageLocality
from services.scorer.plugins.image_score import ImageScore
from services.scorer.plugins.inter_pod_affinity import InterPodAffinity
from services.scorer.plugins.load_variation_risk_balancing import LoadVariationRiskBalancing
from services.scorer.plugins.low_risk_over_commitment import LowRiskOverCommitment
from services.scorer.plugins.network_traffic import NetworkTraffic
from services.scorer.plugins.node_affinity import NodeAffinity
from services.scorer.plugins.node_metadata import NodeMetadata
from services.scorer.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from services.scorer.plugins.node_resources_least_allocated import NodeResourcesLeastAllocated
from services.scorer.plugins.node_resources_most_allocated import NodeResourcesMostAllocated
from services.scorer.plugins.pigeon_holing import PigeonHoling
from services.scorer.plugins.pod_topology_spread import PodTopologySpread
from services.scorer.plugins.requested_to_capacity_ratio import RequestedToCapacityRatio
from services.scorer.plugins.safe_balance import SafeBalance
from services.scorer.plugins.safe_overload import SafeOverload
from services.scorer.plugins.taint_toleration import TaintToleration
from services.scorer.plugins.target_load_packing import TargetLoadPacking

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
)
