"""A real kube-scheduler starts with what `moorage convert-policy` writes, and runs what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.legacy.convert import FILTERS, PREDICATES, PRIORITIES, SCORES, convert
from tools.golden.policies import kubeconfig, started
from tools.planes.embedded import ROOT

ARTICLE = json.loads((ROOT / "tests" / "data" / "legacy-policy.json").read_text())
CURVE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


def listed(names: Any) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


POLICIES: dict[str, dict[str, Any]] = {
    "article": ARTICLE,
    "absent": {},
    "empty": {"predicates": [], "priorities": []},
    "everything": {
        "predicates": listed(PREDICATES),
        "priorities": [{"name": name, "weight": 3} for name in PRIORITIES],
        "hardPodAffinitySymmetricWeight": 100,
    },
    "arguments": {
        "predicates": [{"name": "Mine", "argument": {"labelsPresence": {"labels": ["a"]}}}],
        "priorities": [
            {"name": "Full", "weight": 7, "argument": {"requestedToCapacityRatioArguments": CURVE}}
        ],
    },
    "extended": {
        "predicates": [],
        "priorities": [],
        "extenders": [
            {
                "urlPrefix": "http://x",
                "filterVerb": "filter",
                "bindVerb": "bind",
                "httpTimeout": 100_000_000,
                "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
            }
        ],
    },
}


def run(folder: Path, name: str) -> tuple[list[str], dict[str, int]]:
    """Return the filters and the weights of the scores that kube-scheduler runs.

    Without those that came after the Policy.
    """
    file = folder / "policy.json"
    file.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", **POLICIES[name]}))
    text, _ = convert(file, "converted")
    config = yaml.safe_load(text)
    config["clientConnection"] = {"kubeconfig": str(kubeconfig(folder))}
    config["leaderElection"] = {"leaderElect": False}
    (folder / "config.yaml").write_text(json.dumps(config))
    (found,) = started(folder, folder / "config.yaml", 1)
    filters = [plugin for plugin, _ in found["filter"] if plugin in FILTERS]
    return filters, {plugin: weight for plugin, weight in found["score"] if plugin in SCORES}


@pytest.mark.parametrize(
    ("name", "filters", "scores"),
    [
        (
            "article",
            {
                "NodeUnschedulable",
                "TaintToleration",
                "NodeName",
                "NodeAffinity",
                "NodePorts",
                "NodeResourcesFit",
                "VolumeRestrictions",
            },
            {"NodeResourcesFit": 1, "NodeResourcesBalancedAllocation": 1, "PodTopologySpread": 1},
        ),
        ("empty", {"NodeUnschedulable", "TaintToleration"}, {}),
        (
            "arguments",
            {"NodeUnschedulable", "TaintToleration", "NodeAffinity"},
            {"NodeResourcesFit": 7},
        ),
        ("extended", {"NodeUnschedulable", "TaintToleration"}, {}),
    ],
)
def test_it_runs_what_the_policy_names(
    tmp_path: Path, name: str, filters: set[str], scores: dict[str, int]
) -> None:
    found, weights = run(tmp_path, name)
    assert set(found) == filters
    assert weights == scores


def test_without_lists_it_runs_the_defaults(tmp_path: Path) -> None:
    found, weights = run(tmp_path, "absent")
    assert set(found) == set(FILTERS)
    assert set(weights) == set(SCORES)


def test_it_runs_everything_that_there_ever_was(tmp_path: Path) -> None:
    found, weights = run(tmp_path, "everything")
    assert set(found) == set(FILTERS)
    assert set(weights) == {plugin for plugin in PRIORITIES.values() if plugin}
    assert set(weights.values()) == {3}
