"""What the plugins that weigh resources share."""

from collections.abc import Sequence
from typing import Annotated

from moorage import Amounts, Arguments, Meta, Nodes, Pod
from moorage.in_tree.shared import NATIVE


class ResourceSpec(Arguments):
    """A resource, and how much it counts beside the others."""

    name: Annotated[str, Meta(min_length=1)]
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


def that_count(resources: Sequence[ResourceSpec], pod: Pod) -> Sequence[ResourceSpec]:
    """Leave out extended resources that the pod does not request."""
    if resources is CPU_AND_MEMORY:
        return resources
    requests = pod.requests
    return [r for r in resources if r.name in NATIVE or requests.get(r.name)]


def requested_with(resource: str, pod: Pod, nodes: Nodes) -> Amounts:
    """Return what is requested on the nodes with the pod; idle containers count as small ones."""
    nonzero = pod.nonzero_requests
    if resource in nonzero:
        return nodes.nonzero_requested(resource) + nonzero[resource]
    return nodes.requested(resource) + pod.requests.get(resource, 0)
