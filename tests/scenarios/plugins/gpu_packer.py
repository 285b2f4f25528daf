# gpu_packer.py
from moorage import Node, Normalization, Pod, Scope, ScorePlugin

GPU = "example.com/gpu"


class GpuPacker(ScorePlugin):
    """Prefers nodes with few free GPUs; for pods that want none, nodes without GPUs."""

    depends_on = Scope.NODE
    normalization = Normalization.REVERSED_MAXIMUM  # the least is the best

    def score_node(self, pod: Pod, node: Node) -> float:
        gpus = node.allocatable.get(GPU, 0)
        if not pod.requests.get(GPU):
            return float(gpus > 0)
        return gpus - node.requested.get(GPU, 0)
