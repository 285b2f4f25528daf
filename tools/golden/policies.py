"""Asks kube-scheduler which plugins run, for a table of profiles; records its answers.

What `make test` compares our merge with is recorded by: python -m tools.golden.policies
"""

import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from cli.up.processes import free_ports
from tools.build import find, kubernetes_version, minor_version
from tools.planes.embedded import ROOT

RECORDED = ROOT / "tests" / "data" / f"policy-merge-{minor_version()}.json"
PATIENCE = 30.0

# Without these two a profile cannot run.
NEEDED = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]


def on(*names: str) -> list[dict[str, Any]]:
    """Write `NAME` or `NAME=WEIGHT` as plugins."""
    pairs = (name.partition("=") for name in names)
    return [{"name": name} | ({"weight": int(w)} if w else {}) for name, _, w in pairs]


ALL_OFF = on("*")
CASES: dict[str, dict[str, Any]] = {
    "the default": {},
    "a point that is empty": {"score": {}},
    "a weight at a point": {"score": {"enabled": on("ImageLocality=7")}},
    "two reordered at a point": {"score": {"enabled": on("ImageLocality", "NodeAffinity=5")}},
    "a weight in multiPoint": {"multiPoint": {"enabled": on("TaintToleration=9")}},
    "enabled in multiPoint without a weight": {"multiPoint": {"enabled": on("TaintToleration")}},
    "a weight in both": {
        "multiPoint": {"enabled": on("NodeAffinity=4")},
        "score": {"enabled": on("NodeAffinity=6")},
    },
    "disabled in multiPoint": {"multiPoint": {"disabled": on("NodePorts", "ImageLocality")}},
    "disabled at a point": {"score": {"disabled": on("NodeAffinity")}},
    "disabled at the other point": {"filter": {"disabled": on("NodeAffinity")}},
    "a point without defaults": {"score": {"disabled": ALL_OFF}},
    "a point with one only": {"score": {"enabled": on("NodeResourcesFit=3"), "disabled": ALL_OFF}},
    "a point with its own order": {
        "filter": {"enabled": on("NodePorts", "NodeName", "NodeAffinity"), "disabled": ALL_OFF}
    },
    "nothing but what multiPoint names": {
        "multiPoint": {"enabled": [*NEEDED, *on("NodeAffinity=3", "NodeName")], "disabled": ALL_OFF}
    },
    "disabled and enabled again in multiPoint": {
        "multiPoint": {"enabled": on("NodeName"), "disabled": on("NodeName")}
    },
    "disabled and enabled again at a point": {
        "score": {"enabled": on("TaintToleration=2"), "disabled": on("TaintToleration")}
    },
    "only at a point": {
        "multiPoint": {"disabled": on("ImageLocality")},
        "score": {"enabled": on("ImageLocality=2")},
    },
    "at a point and not, mixed": {
        "multiPoint": {"disabled": on("ImageLocality", "NodeName")},
        "score": {"enabled": on("ImageLocality=2", "PodTopologySpread=8")},
        "filter": {"enabled": on("NodeName", "NodePorts"), "disabled": on("NodeAffinity")},
    },
    "moved to the end of multiPoint": {
        "multiPoint": {
            "enabled": on("NodeUnschedulable", "ImageLocality=3"),
            "disabled": on("NodeUnschedulable"),
        }
    },
    "disabling what is not there": {"score": {"disabled": on("NodeName")}},
}


def ask() -> list[dict[str, Any]]:
    """Return what kube-scheduler makes of each case, in order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = _config(folder)
        expanded = started(folder, config, len(CASES))
        merged = _written(folder, config)
    return [
        {"case": case, "plugins": plugins, "multiPoint": merged[i], **expanded[i]}
        for i, (case, plugins) in enumerate(CASES.items())
    ]


def started(folder: Path, config: Path, count: int) -> list[dict[str, list[list[Any]]]]:
    """Return what runs in each of *count* profiles, at the points that we have too.

    kube-scheduler logs that when it starts.

    Raises:
        RuntimeError: It does not start.
    """
    (port,) = free_ports(1)
    command = [str(find("kube-scheduler")), f"--config={config}", "--bind-address=127.0.0.1"]
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, f"--secure-port={port}", f"--cert-dir={folder}", "--v=2"], stderr=file
        )
    try:
        limit = time.monotonic() + PATIENCE
        while len(found := _logged(log)) < count:
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(log.read_text()[-4000:])
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    return found


def kubeconfig(folder: Path) -> Path:
    """Write a kubeconfig of a server that is not there."""
    cluster = {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}
    (folder / "kubeconfig").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "none",
                "clusters": [cluster],
                "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
                "users": [{"name": "none", "user": {}}],
            }
        )
    )
    return folder / "kubeconfig"


def _config(folder: Path) -> Path:
    profiles = [
        {"schedulerName": f"case-{i}", "plugins": plugins}
        for i, plugins in enumerate(CASES.values())
    ]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig(folder))},
        "leaderElection": {"leaderElect": False},
        "profiles": profiles,
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder / "config.yaml"


def _written(folder: Path, config: Path) -> list[list[list[Any]]]:
    """Return each profile's multiPoint set after the merge with the defaults."""
    out = folder / "written.yaml"
    command = [str(find("kube-scheduler")), f"--config={config}", f"--write-config-to={out}"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    profiles = yaml.safe_load(out.read_text())["profiles"]
    return [
        [[p["name"], p["weight"]] for p in profile["plugins"]["multiPoint"]["enabled"]]
        for profile in profiles
    ]


def _logged(log: Path) -> list[dict[str, list[list[Any]]]]:
    lines = re.findall(r"starts to work with those plugins\" Plugins=(\{.*\})\n", log.read_text())
    return [
        {
            point.lower(): [[p["Name"], p["Weight"]] for p in plugins[point]["Enabled"] or ()]
            for point in ("Filter", "Score")
        }
        for plugins in map(json.loads, lines)
    ]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case) for case in ask())
    version = json.dumps(kubernetes_version())
    RECORDED.write_text(f'{{"version": {version}, "cases": [\n{lines}\n]}}\n')
