"""Nodes that are annotated with how busy they are, for tests of plugins that read that."""

from moorage.models import NodeManifest
from moorage.testing import make_node


def loaded_node(
    name: str = "node",
    *,
    cpu: str = "4000m",
    memory: str = "16Gi",
    free_cpu: object = None,
    std_cpu: object = None,
    free_memory: object = None,
    std_memory: object = None,
    prefix: str = "",
    **others: str,
) -> NodeManifest:
    """Make a node: free and deviating CPU in millicores, memory in bytes."""
    values = {
        "mean-free-cpu": free_cpu,
        "std-free-cpu": std_cpu,
        "mean-free-memory": free_memory,
        "std-free-memory": std_memory,
    }
    annotations = {prefix + key: str(value) for key, value in values.items() if value is not None}
    annotations |= {key.replace("_", "-"): value for key, value in others.items()}
    return make_node(name, allocatable={"cpu": cpu, "memory": memory}, annotations=annotations)
