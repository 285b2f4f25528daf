"""The overlay that the documentation shows builds and does what it is for."""

import shutil
import subprocess
from pathlib import Path

import yaml

from tests.needs import needed
from tools.docs.pages import ROOT, blocks


def test_the_overlay_gives_plugins_and_policy_to_those_who_need_them(tmp_path: Path) -> None:
    kubectl = needed("kubectl")
    (overlay,) = (
        b.text
        for b in blocks("yaml")
        if b.page.name == "install.md" and b.text.startswith("# kustomization.yaml")
    )
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "kustomization.yaml").write_text(overlay)
    (tmp_path / "max_temperature.py").write_text("# a plugin\n")
    (tmp_path / "policy.yaml").write_text("changed: true\n")
    done = subprocess.run(
        [kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    objects = {(m["kind"], m["metadata"]["name"]): m for m in yaml.safe_load_all(done.stdout)}
    (plugins,) = (name for kind, name in objects if name.startswith("plugins-"))
    for name in ("filter", "scorer"):
        pod = objects["Deployment", name]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["args"] == ["--plugin=/plugins"]
        assert container["image"] == "registry.example.com/moorage:1"
        assert {"name": "plugins", "mountPath": "/plugins", "readOnly": True} in container[
            "volumeMounts"
        ]
        assert {"name": "plugins", "configMap": {"name": plugins}} in pod["volumes"]
    policy = objects["ConfigMap", "policy"]
    assert policy["data"] == {"policy.yaml": "changed: true\n"}
