"""The filter plugins that come with the service; the policy decides which of them run."""

from services.filter.plugins.inter_pod_affinity import InterPodAffinity
from services.filter.plugins.node_affinity import NodeAffinity
from services.filter.plugins.node_group import NodeGroup
from services.filter.plugins.node_name import NodeName
from services.filter.plugins.node_ports import NodePorts
from services.filter.plugins.node_resources_fit import NodeResourcesFit
from services.filter.plugins.node_unschedulable import NodeUnschedulable
from services.filter.plugins.one_node_per_pipeline_run import OneNodePerPipelineRun
from services.filter.plugins.pod_topology_spread import PodTopologySpread
from services.filter.plugins.safe_overload import SafeOverload
from services.filter.plugins.stateful_set_zone import StatefulSetZone
from services.filter.plugins.taint_toleration import TaintToleration
from services.filter.plugins.volume_restrictions import VolumeRestrictions

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
)
