"""The objects of docs/how-to/exercises.md for any run, as a StatefulSet makes them."""

import copy
import re
from typing import Any, Final

import yaml

from tools.planes.embedded import ROOT, Object

__all__ = ["ISOLATED", "TEXT", "Object", "placeholder", "task"]

PAGE: Final = ROOT / "docs" / "how-to" / "exercises.md"
TEXT: Final = PAGE.read_text().partition("\n## 7. ")[2]
"""The section about placeholders."""
FOLDER: Final = ROOT / "deploy" / "examples" / "placeholder"
WRITTEN: Final = "build-1"
"""The run in the files; others are made by writing another name."""


def placeholder(run: str, **changed: Any) -> Object:
    """Build the one pod of the StatefulSet, with some fields of its spec changed."""
    stateful = _read("placeholder.yaml", run)
    assert stateful["spec"]["replicas"] == 1
    template = stateful["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == stateful["spec"]["selector"]["matchLabels"]
    name = f"{stateful['metadata']['name']}-0"
    return _pod(name, labels, {**template["spec"], **changed})


def task(run: str, name: str, **changed: Any) -> Object:
    """Build a pod of a run, with some fields of its spec changed."""
    obj = _read("task.yaml", run)
    return _pod(f"{run}-{name}", obj["metadata"]["labels"], {**obj["spec"], **changed})


def _read(file: str, run: str) -> Object:
    obj: Object = yaml.safe_load((FOLDER / file).read_text().replace(WRITTEN, run))
    return obj


def _pod(name: str, labels: dict[str, str], spec: Object) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    # Nobody plays the kubelet: with a grace period a deleted pod would stay for ever.
    spec = {**copy.deepcopy(spec), "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _isolated() -> Object:
    (shown,) = re.findall(r"```yaml\n(affinity:.*?)```", TEXT, re.S)
    affinity: Object = yaml.safe_load(shown)["affinity"]
    return affinity


ISOLATED: Final = _isolated()
"""The affinity of placeholders that share no node, from the page."""
