"""Makes the mappings inside of pods and nodes read-only, before anyone else has seen them.

msgspec decodes them as dicts, and the structs around them are frozen already. `sharing` calls this
once for each part that is new, and who hands a plugin a pod that is not shared calls `freeze_pod`.
"""

from collections.abc import Iterable

from msgspec.structs import force_setattr

from moorage.models.base import Model, ReadOnlyDict, read_only
from moorage.models.constraints import Affinity, PodAffinity, PodAffinityTerm
from moorage.models.node import NodeManifest
from moorage.models.pod import Pod
from moorage.models.pod_spec import Container, PodSpec
from moorage.models.selectors import LabelSelector


def freeze_pod(pod: Pod) -> Pod:
    """Make all mappings of a pod read-only."""
    _freeze(pod.metadata, "labels", "annotations")
    freeze_template(pod.spec)
    return pod


def freeze_template(spec: PodSpec) -> PodSpec:
    """Make all mappings of a pod's spec read-only."""
    _freeze(spec, "overhead", "node_selector")
    _freeze(spec.resources, "requests", "limits")
    _freeze_containers(spec.containers)
    _freeze_containers(spec.init_containers)
    if spec.affinity is not None:
        _freeze_affinity(spec.affinity)
    for constraint in spec.topology_spread_constraints:
        _freeze_selector(constraint.label_selector)
    return spec


def freeze_node(node: NodeManifest) -> NodeManifest:
    """Make all mappings of a node read-only."""
    _freeze(node.metadata, "labels", "annotations")
    _freeze(node.status, "allocatable")
    return node


def _freeze(owner: Model, *names: str) -> None:
    for name in names:
        mapping = getattr(owner, name)
        if type(mapping) is not ReadOnlyDict:
            force_setattr(owner, name, read_only(mapping))


def _freeze_containers(containers: Iterable[Container]) -> None:
    for container in containers:
        _freeze(container.resources, "requests", "limits")


def _freeze_affinity(affinity: Affinity) -> None:
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            for term in _terms(part):
                _freeze_selector(term.label_selector)
                _freeze_selector(term.namespace_selector)


def _terms(affinity: PodAffinity) -> tuple[PodAffinityTerm, ...]:
    return (*affinity.required, *(each.pod_affinity_term for each in affinity.preferred))


def _freeze_selector(selector: LabelSelector | None) -> None:
    if selector is not None:
        _freeze(selector, "match_labels")
