"""The profiles that kube-scheduler's numbers are recorded with.

Every score plugin has weight 1, so that what is logged is what it said.
"""

from typing import Any, Final

from tools.golden.objects import HOSTNAME, SHORT, ZONE
from tools.planes.embedded import Object

UNMET: Final = "example.com/unobtainable"
"""A resource that no node has."""

SCORED: Final = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)

FILLER: Final = "NodeResourcesFit"
"""The filter plugin that rejects what the one in question lets pass."""

FILTERS: Final = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "VolumeRestrictions",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
)

NEEDED: Final = ("PrioritySort", "DefaultPreemption", "DefaultBinder")


def _specs(**weights: int) -> list[Object]:
    return [{"name": SHORT.get(name, name), "weight": weight} for name, weight in weights.items()]


def _fit(kind: str, *shape: tuple[int, int], **weights: int) -> Object:
    strategy: Object = {"type": kind, "resources": _specs(**weights)}
    if shape:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": strategy}


SCORE_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {},
    "most": {
        "NodeResourcesFit": _fit("MostAllocated", cpu=2, memory=1, gpu=5, disk=3),
        "NodeResourcesBalancedAllocation": {"resources": _specs(cpu=1, memory=1, gpu=1, disk=1)},
        "InterPodAffinity": {"hardPodAffinityWeight": 40},
        "PodTopologySpread": {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
                {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
            ],
        },
    },
    "ratio": {
        "NodeResourcesFit": _fit(
            "RequestedToCapacityRatio", (0, 0), (37, 9), (80, 3), (100, 10), cpu=3, memory=2, gpu=1
        ),
        "NodeResourcesBalancedAllocation": {"resources": _specs(disk=1)},
        "InterPodAffinity": {
            "hardPodAffinityWeight": 0,
            "ignorePreferredTermsOfExistingPods": True,
        },
        "PodTopologySpread": {"defaultingType": "List", "defaultConstraints": []},
    },
    "least": {
        "NodeResourcesFit": _fit("LeastAllocated", cpu=1, memory=7, gpu=2, disk=10),
        "NodeResourcesBalancedAllocation": {"resources": _specs(cpu=1, memory=1, disk=1)},
    },
}


def configuration() -> Object:
    """Return a configuration with a profile for each set of arguments, and for each filter."""
    scoring = [_profile(name, SCORED, FILTERS, args) for name, args in SCORE_PROFILES.items()]
    filtering = [_profile(name, (FILLER,), (name, FILLER), {}) for name in FILTERS]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": scoring + filtering,
    }


def _profile(
    name: str, scored: tuple[str, ...], filters: tuple[str, ...], args: dict[str, Any]
) -> Object:
    enabled = dict.fromkeys((*filters, *scored, *NEEDED))
    return {
        "schedulerName": name,
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": plugin, "weight": 1} for plugin in enabled],
                "disabled": [{"name": "*"}],
            }
        },
        "pluginConfig": [
            {"name": plugin, "args": given | _kind(plugin)} for plugin, given in args.items()
        ],
    }


def _kind(plugin: str) -> Object:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin}Args"}
