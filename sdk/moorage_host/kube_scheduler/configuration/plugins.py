"""kube-scheduler's in-tree plugins: at which extension points each can run, and which are default.

The tables are of the newest minor version; where an older one differs, a row says since when, or
until when. `tests/host/kube_scheduler` holds them to what the programs themselves answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage_host.policy.merge import Entry, EntrySet

NEWEST = 37
"""The minor version that is meant unless another one is named."""

SCORES = ("score", "placementScore")
"""The extension points at which a weight counts."""

GROUP_POINTS = {"placementGenerate": 36, "placementScore": 36, "podGroupPostFilter": 37}
"""The extension points of pod groups, and the minor version that brought each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTreePlugin:
    """A plugin.

    Attributes:
        points: Where it can run.
        later: The points that came in a later minor version than the plugin.
        since: The first minor version that has it.
        until: The last one, if it is gone.
    """

    points: frozenset[str]
    later: Mapping[str, int] = field(default_factory=dict)
    since: int = 0
    until: int | None = None

    def is_in(self, minor: int) -> bool:
        """Return whether a minor version has the plugin."""
        return self.since <= minor and (self.until is None or minor <= self.until)

    def runs_at(self, point: str, minor: int) -> bool:
        """Return whether it can run at an extension point."""
        return point in self.points and minor >= self.later.get(point, 0)


def _plugin(*points: str, since: int = 0, until: int | None = None, **later: int) -> InTreePlugin:
    return InTreePlugin(points=frozenset((*points, *later)), later=later, since=since, until=until)


_LIMITS = _plugin("preFilter", "filter", until=30)

IN_TREE: Mapping[str, InTreePlugin] = {
    "SchedulingGates": _plugin("preEnqueue"),
    "PrioritySort": _plugin("queueSort"),
    "NodeName": _plugin("filter", preFilter=37),
    "NodeUnschedulable": _plugin("filter", preFilter=37),
    "TaintToleration": _plugin("filter", "preScore", "score", preFilter=37),
    "NodeAffinity": _plugin("preFilter", "filter", "preScore", "score"),
    "NodePorts": _plugin("preFilter", "filter"),
    "NodeResourcesFit": _plugin("preFilter", "filter", "preScore", "score", placementScore=36),
    "VolumeRestrictions": _plugin("preFilter", "filter"),
    "NodeVolumeLimits": _plugin("preFilter", "filter"),
    "VolumeBinding": _plugin("preFilter", "filter", "preScore", "score", "reserve", "preBind"),
    "VolumeZone": _plugin("preFilter", "filter"),
    "PodTopologySpread": _plugin("preFilter", "filter", "preScore", "score"),
    "InterPodAffinity": _plugin("preFilter", "filter", "preScore", "score"),
    "DynamicResources": _plugin(
        *("preEnqueue", "preFilter", "filter", "postFilter", "reserve", "preBind"),
        score=36,
        podGroupPostFilter=37,
    ),
    "DefaultPreemption": _plugin("postFilter", preEnqueue=36, podGroupPostFilter=37),
    "NodeResourcesBalancedAllocation": _plugin("preScore", "score"),
    "ImageLocality": _plugin("score"),
    "DefaultBinder": _plugin("bind"),
    "NodeDeclaredFeatures": _plugin("preFilter", "filter", since=36),
    "DeferredPodScheduling": _plugin("preFilter", "filter", "permit", since=37),
    "GangScheduling": _plugin("preEnqueue", "permit", since=36),
    "TopologyPlacementGenerator": _plugin("placementGenerate", since=36),
    "PodGroupPodsCount": _plugin("placementScore", since=36),
    "EBSLimits": _LIMITS,
    "GCEPDLimits": _LIMITS,
    "AzureDiskLimits": _LIMITS,
    "CinderLimits": _LIMITS,
}

DEFAULTS = EntrySet(
    (
        Entry("SchedulingGates"),
        Entry("PrioritySort"),
        Entry("NodeName"),
        Entry("NodeUnschedulable"),
        Entry("TaintToleration", 3),
        Entry("NodeAffinity", 2),
        Entry("NodePorts"),
        Entry("NodeResourcesFit", 1),
        Entry("VolumeRestrictions"),
        Entry("NodeVolumeLimits"),
        Entry("VolumeBinding"),
        Entry("VolumeZone"),
        Entry("PodTopologySpread", 2),
        Entry("InterPodAffinity", 2),
        Entry("DynamicResources", 2),
        Entry("DefaultPreemption"),
        Entry("NodeResourcesBalancedAllocation", 1),
        Entry("ImageLocality", 1),
        Entry("DefaultBinder"),
        Entry("NodeDeclaredFeatures"),
    )
)
"""kube-scheduler's default plugins in its order, with the weights of their scores."""

SUCCESSORS: Mapping[str, str] = {
    **dict.fromkeys(
        ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits", "NonCSILimits"),
        "it is gone; NodeVolumeLimits counts volumes of CSI drivers",
    ),
    "NodeResourcesLeastAllocated": (
        "it is the scoringStrategy LeastAllocated of NodeResourcesFit since Kubernetes 1.23"
    ),
    "NodeResourcesMostAllocated": (
        "it is the scoringStrategy MostAllocated of NodeResourcesFit since Kubernetes 1.23"
    ),
    "RequestedToCapacityRatio": (
        "it is the scoringStrategy RequestedToCapacityRatio of NodeResourcesFit since "
        "Kubernetes 1.23"
    ),
    "SelectorSpread": "it is gone; PodTopologySpread with its system defaults spreads pods",
    "DefaultPodTopologySpread": (
        "it is gone; PodTopologySpread with its system defaults spreads pods"
    ),
    "NodeLabel": "it is gone; NodeAffinity has addedAffinity",
    "ServiceAffinity": "it is gone; give the pods podAffinity",
    "NodePreferAvoidPods": "it is gone; taint the nodes with effect PreferNoSchedule",
    "NodeResourceLimits": "it is gone",
}
"""What plugins that kube-scheduler had once became."""


def known_at(point: str, minor: int) -> list[str]:
    """Return the plugins that can run at a point; at multiPoint all can."""
    return [
        name
        for name, plugin in IN_TREE.items()
        if plugin.is_in(minor) and (point == "multiPoint" or plugin.runs_at(point, minor))
    ]
