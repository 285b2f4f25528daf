"""The filter plugins that come with the service; the policy decides which of them run."""

from services.filter.plugins.gang import Gang
from services.filter.plugins.in_tree.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.in_tree.node_affinity import NodeAffinity
from services.filter.plugins.in_tree.node_name import NodeName
from services.filter.plugins.in_tree.node_ports import NodePorts
from services.filter.plugins.in_tree.node_resources_fit import NodeResourcesFit
from services.filter.plugins.in_tree.node_unschedulable import NodeUnschedulable
from services.filter.plugins.in_tree.pod_topology_spread import PodTopologySpread
from services.filter.plugins.in_tree.taint_toleration import TaintToleration
from services.filter.plugins.in_tree.volume_restrictions import VolumeRestrictions
from services.filter.plugins.license_seats import LicenseSeats
from services.filter.plugins.maintenance_windows import MaintenanceWindows
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from services.filter.plugins.safe_overload import SafeOverload
from services.filter.plugins.stateful_set_zone import StatefulSetZone

BUILT_INS = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    NodeGroup,
    SafeOverload,
    PodTopologySpread,
    InterPodAffinity,
    VolumeRestrictions,
    OneNodePerPipelineRun,
    StatefulSetZone,
    Gang,
    LicenseSeats,
    MaintenanceWindows,
)
