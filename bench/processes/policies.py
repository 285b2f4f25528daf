"""Moorage's policies in the bench: a profile for each form and number of plugins."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

Form = Literal["batch", "per node"]
FORMS: tuple[Form, ...] = ("batch", "per node")

FILTERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeName",
    "NodePorts",
    "NodeGroup",
    "VolumeRestrictions",
    "PodTopologySpread",
    "InterPodAffinity",
)
"""Built-in filters; the first three are what the Go extender with plugins has."""

SCORES = (
    ("TaintToleration", 3),
    ("NodeResourcesLeastAllocated", 1),
    ("NodeResourcesBalancedAllocation", 1),
    ("NodeAffinity", 1),
    ("ImageLocality", 1),
    ("NodeResourcesMostAllocated", 1),
    ("RequestedToCapacityRatio", 1),
    ("PodTopologySpread", 1),
    ("InterPodAffinity", 1),
    ("Equal", 1),
)
"""Built-in scores with their weights; the first three are those of the Go extender."""

COUNTS = (1, 3, 10)

EMPTY = "empty"
"""The schedulerName of the profile without plugins."""

PER_NODE = 3
"""Plugins of the list that exist in the per-node form."""

PLUGINS = Path(__file__).with_name("plugins")
PER_NODE_PLUGINS = PLUGINS / "per_node.py"


def profile_name(form: Form, count: int) -> str:
    """Return the schedulerName of a profile."""
    return f"{form.replace(' ', '-')}-{count}"


def policy() -> object:
    """Return the policy that has all profiles."""
    profiles = (_profile(form, count) for form in FORMS for count in COUNTS)
    return of([*profiles, {"schedulerName": EMPTY}])


def of(profiles: Iterable[object]) -> object:
    """Return the policy that has these profiles."""
    return {
        "apiVersion": "moorage.io/v1alpha1",
        "kind": "MoorageConfiguration",
        "profiles": [*profiles],
    }


def profile(name: str, *, filters: Sequence[object], scores: Sequence[object]) -> dict[str, object]:
    """Return the profile of a schedulerName that has these plugins and no others."""
    return {
        "schedulerName": name,
        "plugins": {"filter": {"enabled": filters}, "score": {"enabled": scores}},
    }


def _profile(form: Form, count: int) -> object:
    filters, scores = (_batch if form == "batch" else _per_node)(count)
    return profile(profile_name(form, count), filters=filters, scores=scores)


def _batch(count: int) -> tuple[list[object], list[object]]:
    scores: list[object] = [{"name": name, "weight": weight} for name, weight in SCORES[:count]]
    return [{"name": name} for name in FILTERS[:count]], scores


def _per_node(count: int) -> tuple[list[object], list[object]]:
    """Return plugins of plugins/per_node.py: three of some use, then seven that read a label."""
    more = range(PER_NODE + 1, count + 1)
    filters: list[object] = [{"name": f"PerNode{name}"} for name in FILTERS[:PER_NODE][:count]]
    filters += [{"name": f"PerNodeFilter{number}"} for number in more]
    scores: list[object] = [
        {"name": f"PerNode{name}", "weight": weight} for name, weight in SCORES[:PER_NODE][:count]
    ]
    scores += [{"name": f"PerNodeScore{number}"} for number in more]
    return filters, scores
