"""Asks kube-scheduler which plugins run, for a table of profiles; records its answers.

What `make test` compares our merge with is recorded by: python -m tools.golden.policies
The profiles are those of the last recording. A new one is a new entry there, with its `case` and
its `plugins`.
"""

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cli.up.processes import free_ports
from sandbox.apiserver.server import kubeconfig as kubeconfig_of
from tools.build import find, kubernetes_version
from tools.golden.scheduler import last_recording, recording

RECORDED = recording("policy-merge")
PATIENCE = 30.0


def ask() -> list[dict[str, Any]]:
    """Return what kube-scheduler makes of each case, in order."""
    cases = json.loads(last_recording(RECORDED).read_text())["cases"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = _config(folder, cases)
        expanded = started(folder, config, len(cases))
        merged = _written(folder, config)
    return [{**each, "multiPoint": merged[i], **expanded[i]} for i, each in enumerate(cases)]


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
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig_of("http://127.0.0.1:9")))
    return folder / "kubeconfig"


def _config(folder: Path, cases: Sequence[dict[str, Any]]) -> Path:
    profiles = [
        {"schedulerName": f"case-{i}", "plugins": each["plugins"]} for i, each in enumerate(cases)
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
