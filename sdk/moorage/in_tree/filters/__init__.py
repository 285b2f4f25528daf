"""Filter plugins with the rules of kube-scheduler's own."""

from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.filters.node_affinity import NodeAffinity
from moorage.in_tree.filters.node_name import NodeName
from moorage.in_tree.filters.node_ports import NodePorts
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.filters.node_unschedulable import NodeUnschedulable
from moorage.in_tree.filters.pod_topology_spread import PodTopologySpread
from moorage.in_tree.filters.taint_toleration import TaintToleration
from moorage.in_tree.filters.volume_restrictions import VolumeRestrictions

FILTERS = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    PodTopologySpread,
    InterPodAffinity,
)
"""All of them."""
