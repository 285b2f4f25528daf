"""The score plugins that come with the service; the policy decides which of them run."""

from moorage.in_tree.scores import SCORES
from services.scorer.plugins.equal import Equal
from services.scorer.plugins.image_score import ImageScore
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
    *SCORES,
    NetworkTraffic,
    TargetLoadPacking,
    LoadVariationRiskBalancing,
    LowRiskOverCommitment,
    SafeOverload,
    SafeBalance,
    CongestionFactor,
    PigeonHoling,
    Equal,
    ImageScore,
    NodeMetadata,
    NodeCost,
)
