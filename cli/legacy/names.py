"""The predicates and priorities of a Policy by their names, and what became of each."""

from collections.abc import Mapping

MANDATORY = ("NodeUnschedulable", "TaintToleration")
"""Filters that ran with every Policy, listed or not."""

FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
"""The filters that predicates became, in the order in which kube-scheduler runs them.

Filters that came after the Policy (DynamicResources, for one) are none of its business: they stay.
"""

SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
"""The scores that priorities became, in the order in which kube-scheduler runs them."""

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "GeneralPredicates": ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""The filters that a predicate became."""

PRIORITIES: Mapping[str, str | None] = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "EqualPriority": None,
    "NodePreferAvoidPodsPriority": None,
    "ResourceLimitsPriority": None,
}
"""The score that a priority became; None: kube-scheduler has none any more."""

SPREADING = frozenset({"SelectorSpreadPriority", "ServiceSpreadingPriority"})
"""They spread pods of Services and controllers without being asked by the pod."""

_SPREAD = (
    "its system default constraints spread pods of Services and controllers alike, over hosts and "
    "zones, by another formula"
)

PRIORITY_REMARKS: Mapping[str, str] = {
    "SelectorSpreadPriority": _SPREAD,
    "ServiceSpreadingPriority": _SPREAD,
    "EqualPriority": "it gave every node the same",
    "NodePreferAvoidPodsPriority": (
        "removed in Kubernetes 1.24: taint the nodes with effect PreferNoSchedule instead"
    ),
    "ResourceLimitsPriority": "removed in Kubernetes 1.20",
}
