"""The pods that a real kube-scheduler schedules."""

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from bench.processes import objects
from bench.processes.load import Pods
from bench.processes.objects import Object

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The pods of a run.

    Attributes:
        prefix: Of their names; no other pod has it.
        profile: Their schedulerName.
        kind: How they differ from each other. Unlike ones are unlike those of other batches too.
        waiting: How many exist before kube-scheduler starts.
        arriving: How many further ones are created in a second while it runs.
    """

    prefix: str
    profile: str
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
        if self.kind != "equal":
            metadata["labels"] |= {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(number)}
        if self.kind == "unlike":
            requests = spec["containers"][0]["resources"]["requests"]
            requests["memory"] = str((256 << 20) - crc32(name.encode()) % 10**6)
            spec["tolerations"].append({"key": f"example.com/{name}", "operator": "Exists"})
        return {**pod, "status": {}}
