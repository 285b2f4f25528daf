"""Renders the chart, and writes what is committed of it; `python -m tools.manifests.rendering`.

That is an install.yaml for each layout in deploy/install, the files in deploy/files that are read
without a cluster, and what the chart knows of plugins.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from moorage.files import LOADER
from tools.build import find
from tools.manifests import plugins

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "chart" / "moorage"
LAYOUTS = DEPLOY / "layouts"
INSTALL = DEPLOY / "install"

NAMESPACE = "moorage"

KUBERNETES = "1.36.1"
"""The version of kube-scheduler in deploy/install; by Helm the chart takes the cluster's own."""

FILES = {
    "policy.yaml": ("second-scheduler", "policy", "policy.yaml"),
    "kube-scheduler-config.yaml": (
        "second-scheduler",
        "kube-scheduler",
        "kube-scheduler-config.yaml",
    ),
    "control-plane-scheduler-config.yaml": (
        "control-plane",
        "control-plane",
        "kube-scheduler-config.yaml",
    ),
    "kubeadm-patch.yaml": ("control-plane", "control-plane", "kubeadm-patch.yaml"),
}
"""The files of deploy/files, each with the layout, the ConfigMap and the key that it is."""

Manifest = dict[str, Any]
Values = Mapping[str, Any]

ANYWHERE = ["0.0.0.0/0", "::/0"]
"""Where the API server is, for those who do not use Helm: the chart wants it to be said."""

EDIT = """\
# Edit this file first: its NetworkPolicies let gateway, binder and kube-scheduler reach any address
# on the API server's ports. Put the API server's own in place of 0.0.0.0/0 and ::/0, as printed by
# kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes
"""
"""What stands at the top of rendered files."""

_SOURCE = re.compile(r"^# Source: .*\n", re.MULTILINE)


def layouts() -> dict[str, Values]:
    """Return the values of each layout in deploy/layouts."""
    return {file.stem: yaml.safe_load(file.read_text()) or {} for file in LAYOUTS.glob("*.yaml")}


def merged(values: Values, more: Values) -> dict[str, Any]:
    """Return values with others on top, as Helm merges them."""
    result = dict(values)
    for key, value in more.items():
        deeper = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if deeper else value
    return result


def rendered(values: Values, *options: str) -> str:
    """Return what `helm template` makes of values, with the namespace; the API server is anywhere.

    Args:
        values: The values.
        *options: What else Helm is given; without any, `helm test` is left out.

    Raises:
        ValueError: Helm refuses them.
    """
    anywhere = {"networkPolicy": {"apiServer": {"addresses": ANYWHERE}}}
    given = merged({"namespace": {"create": True}, **anywhere}, values)
    return _template(json.dumps(given), *(options or ("--skip-tests",)))


@lru_cache(maxsize=100)
def _template(given: str, *options: str) -> str:
    command = [str(find("helm")), "template", "moorage", str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBERNETES, "--values", "-", *options]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"helm template: {done.stderr}")
    return _SOURCE.sub("", done.stdout)


def render(values: Values) -> list[Manifest]:
    """Return the objects that the chart makes of values."""
    return _objects(rendered(values))


def helm_test(values: Values) -> list[Manifest]:
    """Return the objects that `helm test` makes of values."""
    return _objects(rendered(values, "--show-only", "templates/test.yaml"))


def installed(layout: str) -> list[Manifest]:
    """Return the objects of a layout's committed install.yaml."""
    return _objects((INSTALL / f"{layout}.yaml").read_text())


def _objects(text: str) -> list[Manifest]:
    return list(yaml.load_all(text, Loader=LOADER))


def one(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """Return the object of a kind and a name."""
    (found,) = (m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name))
    return found


def generated() -> dict[Path, str]:
    """Return the content of each file that is written."""
    files = {CHART / plugins.FILE: plugins.table()}
    objects = {}
    for layout, values in layouts().items():
        text = rendered(values)
        about = (LAYOUTS / f"{layout}.yaml").read_text().splitlines(keepends=True)
        head = "".join(line for line in about if line.startswith("#"))
        head += "# Written by `make manifests` from deploy/chart/moorage: change it there.\n"
        if ANYWHERE[0] in text:
            head += EDIT
        files[INSTALL / f"{layout}.yaml"] = head + text
        objects[layout] = _objects(text)
    for name, (layout, config_map, key) in FILES.items():
        content = one(objects[layout], "ConfigMap", config_map)["data"][key]
        files[DEPLOY / "files" / name] = content
    return files


def main() -> None:
    """Write the files."""
    (CHART / plugins.FILE).write_text(plugins.table())  # the chart reads it
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
