"""The rules of two extenders that people run, as plugins for one node."""

import math

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin

CAPACITY = "capacity.topolvm.io/"
"""Before the device class in annotations: of a node its free bytes, of a pod what it asks for."""

GPU_MEMORY, GPU_COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
GPU_INDEX, GPU_TAKEN = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD"
"""Annotations of a pod on a node: the number of its GPU, and how much memory of it."""

GIB = 1 << 30


def requested(pod: Pod) -> dict[str, int]:
    """Return the bytes that a pod asks for, by annotation."""
    return {key: int(value) for key, value in pod.annotations.items() if key.startswith(CAPACITY)}


class TopoLVMCapacity(FilterPlugin):
    """Keeps pods off nodes whose volume groups have too little room, as topolvm-scheduler does."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Compare each device class."""
        for key, size in requested(pod).items():
            free = node.annotations.get(key)
            if free is None:
                return Rejection("no capacity annotation")
            if int(free) < size:
                return Rejection("out of VG free space")
        return None


class TopoLVMRoom(ScorePlugin):
    """Prefers nodes with much room, by the logarithm of the GiB, as topolvm-scheduler does."""

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return 10 for each power of two."""
        free = [int(node.annotations.get(key, 0)) // GIB for key in requested(pod)]
        least = min(free, default=0)
        return float(min(max(int(math.log2(least)), 1), 10) * 10) if least else 0.0


class GpuShare(FilterPlugin):
    """Keeps pods off nodes where no single GPU has room, as gpushare-scheduler-extender does."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Sum up what the node's pods take of each GPU."""
        count = node.allocatable.get(GPU_COUNT, 0)
        if not count:
            return Rejection("not for GPU share")
        taken = dict.fromkeys(range(count), 0)
        for other in node.pods:
            index = other.annotations.get(GPU_INDEX)
            if index is not None:
                taken[int(index)] += int(other.annotations.get(GPU_TAKEN, 0))
        each = node.allocatable[GPU_MEMORY] // count
        if each - min(taken.values()) < pod.requests.get(GPU_MEMORY, 0):
            return Rejection("Insufficient GPU Memory in one device")
        return None
