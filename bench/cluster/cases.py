"""The clusters, the extenders and the pods that pods a second are measured with."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from bench.processes import objects
from bench.processes.load import Pods
from bench.processes.objects import Object

NODES = 5000
HEARTBEAT_SECONDS = 300.0
"""Between two heartbeats of a node, as kubelet sends them if nothing changes."""

HEAVY, LIGHT = "heavy", "light"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Runs on one cluster; each run schedules new pods with one extender.

    Attributes:
        cluster: The kind of cluster.
        node: Makes the node of a number.
        heartbeats: Whether its nodes send heartbeats.
        pods: That wait when kube-scheduler starts; a run ends when as many are bound.
        arriving: Pods that are created in a second while it runs.
        rounds: Runs of each case.
        seconds: After which a run ends, even if pods are left.
        warm_up: Pods that processes schedule after their start, before runs count.
    """

    cluster: str
    node: Callable[[int], Object]
    heartbeats: bool
    pods: int
    arriving: float
    rounds: int
    nodes: int = NODES
    seconds: float = 30.0
    warm_up: int = 100

    @property
    def name(self) -> str:
        """What the results call it."""
        return f"{self.cluster} cluster"

    def quick(self) -> "Series":
        """Return one round of few pods on a small cluster, to see whether it works."""
        return dataclasses.replace(self, nodes=500, pods=60, rounds=1, warm_up=20)


_HEAVY = Series(cluster=HEAVY, node=objects.node, heartbeats=True, arriving=20, pods=1000, rounds=4)
_LIGHT = Series(
    cluster=LIGHT, node=objects.light_node, heartbeats=False, arriving=0, pods=1000, rounds=4
)
SERIES = (_HEAVY, _LIGHT)
"""Of the part `cluster`."""

WITHOUT, GO, GO_BINDS = "no extender", "go nothing", "go nothing, bindVerb"
MOORAGE, MOORAGE_UNLIKE = "moorage", "moorage, unlike pods"
MOORAGE_BINDS = "moorage, bindVerb"
OURS = (MOORAGE, MOORAGE_UNLIKE, MOORAGE_BINDS)
"""What the budgets are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the tables.

    Attributes:
        asked: The extender that kube-scheduler is configured with.
        binds: Whether with bindVerb.
        pods: How pods differ from each other.
        reference: The case that its pods a second are compared with.
    """

    name: str
    asked: Literal["nobody", "go", "moorage"]
    binds: bool = False
    pods: Pods = "equal"
    reference: str = GO


CASES = (
    Case(name=WITHOUT, asked="nobody"),
    Case(name=GO, asked="go"),
    Case(name=GO_BINDS, asked="go", binds=True),
    Case(name=MOORAGE, asked="moorage"),
    Case(name=MOORAGE_UNLIKE, asked="moorage", pods="unlike"),
    Case(name=MOORAGE_BINDS, asked="moorage", binds=True, reference=GO_BINDS),
)

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The pods of a run.

    Attributes:
        prefix: Of their names; no other pod has it.
        profile: Their schedulerName.
        group: The pod group that they belong to; "" if to none.
        kind: How they differ from each other. Unlike ones are unlike those of other batches too.
        waiting: How many exist before kube-scheduler starts.
        arriving: How many further ones are created in a second while it runs.
    """

    prefix: str
    profile: str
    group: str = ""
    kind: Pods = "equal"
    waiting: int
    arriving: float = 0

    def build(self, first: int, count: int) -> Iterator[Object]:
        """Build pods from a number on."""
        return (self._pod(number) for number in range(first, first + count))

    def _pod(self, number: int) -> Object:
        pod, name = objects.new_pod(), f"{self.prefix}-{number}"
        metadata, spec = pod["metadata"], pod["spec"]
        del metadata["ownerReferences"]  # an owner that does not exist
        metadata["name"], spec["schedulerName"] = name, self.profile
        if self.group:
            spec["schedulingGroup"] = {"podGroupName": self.group}
        if self.kind != "equal":
            metadata["labels"] |= {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(number)}
        if self.kind == "unlike":
            requests = spec["containers"][0]["resources"]["requests"]
            requests["memory"] = str((256 << 20) - crc32(name.encode()) % 10**6)
            spec["tolerations"].append({"key": f"example.com/{name}", "operator": "Exists"})
        return {**pod, "status": {}}
