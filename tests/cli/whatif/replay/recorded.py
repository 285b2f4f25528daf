"""A journal of hundreds of cycles, written by the gateway's process on the embedded cluster."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from cli.main import main

PODS = 300
NODES = 20
PLUGINS = Path(__file__).parent / "plugins"
MOORAGE = Path(sys.executable).parent / "moorage"

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: InTree
      - {{name: NodeResourcesBalancedAllocation, weight: {weight}}}
      - name: Crowded
      - name: FewPods
"""


def policy(directory: Path, weight: int) -> Path:
    """Write a policy; return its file."""
    file = directory / f"weight-{weight}.yaml"
    file.write_text(POLICY.format(weight=weight))
    return file


def record(directory: Path) -> Path:
    """Schedule pods; return the journal."""
    choice = random.Random(18)
    pods = [_pod(number, choice) for number in range(PODS)]
    manifest = directory / "pods.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    journal = directory / "journal"
    options = [f"--nodes={NODES}", f"--pods={manifest}", f"--plugin={PLUGINS}"]
    subprocess.run(
        [MOORAGE, "up", "--once", f"--config={policy(directory, 1)}", *options],
        env={
            **os.environ,
            "MOORAGE_JOURNAL": str(journal),
            "MOORAGE_JOURNAL_SEGMENT_BYTES": "100000",
        },
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=500,
    )
    return journal


def _pod(number: int, choice: random.Random) -> dict[str, Any]:
    requests = {
        "cpu": f"{choice.randint(1, 12) * 25}m",
        "memory": f"{choice.randint(1, 40) * 32}Mi",
    }
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default"},
        "spec": {"schedulerName": "moorage", "containers": [container]},
    }


def moorage(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)
