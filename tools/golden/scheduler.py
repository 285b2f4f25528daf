"""The kube-schedulers whose numbers are recorded: their profiles, and what they write.

Every score plugin has weight 1, so that what is logged is what it said.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tools.build import minor_version
from tools.planes.embedded import ROOT, Object, Plane
from tools.waiting import NewLines

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
SHORT: Final = {"gpu": "example.com/gpu", "disk": "ephemeral-storage"}
"""Names of resources, shortened."""

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


def recording(name: str) -> Path:
    """Return the file with what the installed version of Kubernetes answered."""
    return ROOT / "tests" / "data" / f"{name}-{minor_version()}.json"


def last_recording(file: Path) -> Path:
    """Return the same, or that of the newest version if this one has none yet."""
    name = file.name.rpartition("-")[0]
    return file if file.exists() else max(file.parent.glob(f"{name}-*.json"))


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


PATIENCE = 20.0
VERBOSITY = ("--v=3", "--vmodule=schedule_one=10")  # without the bodies of all requests
GATES = "--feature-gates=OpportunisticBatching=false"  # it would reuse scores of similar pods


@asynccontextmanager
async def scheduler(plane: Plane) -> AsyncIterator["Log"]:
    """Run a new kube-scheduler: it knows all that exists before it schedules."""
    program = plane.scheduler("golden", configuration())
    command = (part for part in program.command if not part.startswith("--v="))
    program.command = [*command, *VERBOSITY, GATES]
    program.log.write_bytes(b"")
    try:
        await program.start()
        yield Log(program.log)
    finally:
        await program.stop()


class Log:
    """What a program writes.

    Attributes:
        lines: What was read since `forget`.
    """

    def __init__(self, path: Path) -> None:
        self.lines: list[str] = []
        self._new = NewLines(path)

    async def line(self, pattern: str) -> str:
        """Return the first line that matches; wait for one if none was read yet."""
        wanted, checked = re.compile(pattern), 0
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for line in self.lines[checked:]:
                        if wanted.search(line):
                            return line
                    checked = len(self.lines)
                    if not self._more():
                        await asyncio.sleep(0.002)
        except TimeoutError as error:
            raise RuntimeError(f"no {pattern} in:\n" + "\n".join(self.lines[-60:])) from error

    def forget(self) -> None:
        """Forget all lines that were read."""
        self.lines.clear()

    def _more(self) -> bool:
        new = self._new.read()
        self.lines += [line.decode(errors="replace") for line in new]
        return bool(new)
