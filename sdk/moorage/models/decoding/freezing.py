"""Makes the mappings inside of pods and nodes read-only, before anyone else has seen them.

msgspec decodes them as dicts, and the structs around them are frozen already. `sharing` calls this
once for each part that is new, and who hands a plugin a pod that is not shared calls `freeze_pod`.
"""

from collections.abc import Mapping

from msgspec.structs import force_setattr

from moorage.models.base import NOTHING, Model, ReadOnlyDict
from moorage.models.constraints import Affinity
from moorage.models.node import NodeManifest
from moorage.models.pod import Pod
from moorage.models.pod_spec import PodSpec
from moorage.models.selectors import LabelSelector


def freeze_pod(pod: Pod) -> Pod:
    """Make all mappings of a pod read-only."""
    _freeze_both(pod.metadata, "labels", "annotations")
    freeze_template(pod.spec)
    return pod


def freeze_template(spec: PodSpec) -> PodSpec:
    """Make all mappings of a pod's spec read-only."""
    # Each is looked at first: a call for each of many empty ones would cost more than they do.
    if spec.overhead is not NOTHING or spec.node_selector is not NOTHING:
        _freeze_both(spec, "overhead", "node_selector")
    resources = [container.resources for container in (*spec.containers, *spec.init_containers)]
    for each in (spec.resources, *resources):
        if each.requests is not NOTHING or each.limits is not NOTHING:
            _freeze_both(each, "requests", "limits")
    if spec.affinity is not None:
        _freeze_affinity(spec.affinity)
    for constraint in spec.topology_spread_constraints:
        _freeze_selector(constraint.label_selector)
    return spec


def freeze_node(node: NodeManifest) -> NodeManifest:
    """Make all mappings of a node read-only."""
    _freeze_both(node.metadata, "labels", "annotations")
    _freeze(node.status, "allocatable", node.status.allocatable)
    return node


def _freeze(owner: Model, name: str, mapping: Mapping[str, object]) -> None:
    if type(mapping) is not ReadOnlyDict:
        force_setattr(owner, name, ReadOnlyDict(mapping) if mapping else NOTHING)


def _freeze_both(owner: Model, name: str, other: str) -> None:
    for each in (name, other):
        mapping = getattr(owner, each)
        if type(mapping) is not ReadOnlyDict:
            force_setattr(owner, each, ReadOnlyDict(mapping) if mapping else NOTHING)


def _freeze_affinity(affinity: Affinity) -> None:
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            for term in (*part.required, *(each.pod_affinity_term for each in part.preferred)):
                _freeze_selector(term.label_selector)
                _freeze_selector(term.namespace_selector)


def _freeze_selector(selector: LabelSelector | None) -> None:
    if selector is not None:
        _freeze(selector, "match_labels", selector.match_labels)
