"""Moorage's policy in the bench: three filters and scores in both forms, and none."""

from pathlib import Path

BATCH, PER_NODE, EMPTY = "batch-3", "per-node-3", "empty"
"""The schedulerNames: plugins for all nodes at once, plugins for one node, no plugins."""

FILTERS = ("TaintToleration", "NodeAffinity", "NodeResourcesFit")
SCORES = (
    ("TaintToleration", 3),
    ("NodeResourcesLeastAllocated", 1),
    ("NodeResourcesBalancedAllocation", 1),
)
"""Scores with their weights. The Go extender with plugins has the same filters and scores."""

PLUGINS = Path(__file__).with_name("plugins") / "per_node.py"
"""The file with the plugins for one node; their names begin with PerNode."""


def policy() -> object:
    """Return the policy that has all profiles."""
    return {
        "apiVersion": "moorage.io/v1alpha1",
        "kind": "MoorageConfiguration",
        "profiles": [
            _profile(BATCH, ""),
            _profile(PER_NODE, "PerNode"),
            {"schedulerName": EMPTY},
        ],
    }


def _profile(name: str, prefix: str) -> object:
    filters = [{"name": f"{prefix}{plugin}"} for plugin in FILTERS]
    scores = [{"name": f"{prefix}{plugin}", "weight": weight} for plugin, weight in SCORES]
    return {
        "schedulerName": name,
        "plugins": {"filter": {"enabled": filters}, "score": {"enabled": scores}},
    }
