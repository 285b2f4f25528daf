"""A real kube-scheduler starts with what `moorage convert-policy` writes, and runs what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.legacy.convert import convert
from cli.legacy.names import FILTERS, PREDICATES, PRIORITIES, SCORES
from tools.build import minor_versions
from tools.golden.configurations import refusals
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

EXTENDERS: dict[str, dict[str, Any]] = {
    "fields that are unknown": {"apiVersion": "v1beta1", "ignoreable": True, "URLPrefix": "x"},
    "a score": {"prioritizeVerb": "p", "weight": 2**31},
    "TLS": {"enableHttps": True, "tlsConfig": {"insecure": True, "Insecure": True}},
    "no authority": {"enableHttps": True},
    "all verbs": {"filterVerb": "f", "preemptVerb": "p", "bindVerb": "b", "ignorable": True},
    "a time limit": {"filterVerb": "f", "httpTimeout": 1_500_000_000, "nodeCacheCapable": True},
    "a time limit as text": {"httpTimeout": "1m30s"},
    "resources": {"managedResources": [{"name": "a.io/b", "ignoredByScheduler": True, "x": 1}]},
    "nothing": {"filterVerb": "", "httpTimeout": 0, "managedResources": [], "tlsConfig": None},
}
STRATEGIES = ("LeastRequestedPriority", "MostRequestedPriority")

POLICIES |= {
    f"an extender with {name}": {"extenders": [{"urlPrefix": "http://x", **extender}]}
    for name, extender in EXTENDERS.items()
}
POLICIES |= {
    f"strategies {least} {most} {curve}": {
        "priorities": [
            {"name": name, "weight": weight}
            for name, weight in zip(STRATEGIES, (least, most), strict=True)
        ]
        + [
            {
                "name": "Own",
                "weight": curve,
                "argument": {"requestedToCapacityRatioArguments": CURVE},
            }
        ]
    }
    for least, most, curve in ((1, 9, 5), (9, 1, 9), (4, 4, 1), (7, 1, 6))
}
POLICIES |= {
    "what is lost": {
        "predicates": [{"name": "Region", "argument": {"serviceAffinity": {"labels": ["r"]}}}],
        "priorities": [
            {"name": "Z", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
            {"name": "L", "weight": 1, "argument": {"labelPreference": {"label": "l"}}},
        ],
    },
    "what is old": {"predicates": listed(["NoVolumeNodeConflict", "PodFitsPorts"])},
}


@pytest.mark.parametrize("version", ["1.30", minor_versions()[0]])
def test_kube_scheduler_starts_with_each_converted_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("SCHEDULER", version)
    texts = []
    for policy in POLICIES.values():
        file = tmp_path / "policy.json"
        file.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", **policy}))
        texts.append(convert(file, "converted")[0])
    said = dict(zip(POLICIES, refusals(texts), strict=True))
    assert {name: refusal for name, refusal in said.items() if refusal} == {}


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
    # Least and most requested have equal weights, so nothing remains of them.
    opposite = {"NodeResourcesFit"}
    assert set(weights) == {plugin for plugin in PRIORITIES.values() if plugin} - opposite
    assert set(weights.values()) == {3}
