"""kube-scheduler reads what `moorage config extender` prints, and understands it as it is meant."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli.certs.certificates import keep_certificates
from cli.config.command import GATEWAY_URL
from cli.config.extender import TLS_FOLDER
from cli.main import main
from tools.build import find
from tools.golden.policies import PATIENCE, kubeconfig
from tools.planes.embedded import ROOT

Object = dict[str, Any]

PLUGINS = """\
from moorage import BindPlugin, FilterPlugin, ScorePlugin

class Cards(FilterPlugin):
    managed_resources = ("example.com/gpu", "example.com/slice")
    def filter_node(self, pod, node):
        return None

class Fullest(ScorePlugin):
    managed_resources = ("example.com/gpu",)
    def score_node(self, pod, node):
        return 0

class Marks(BindPlugin):
    async def pre_bind(self, binding):
        return None
"""


def understood(folder: Path, extenders: str) -> list[Object]:
    """Return the entries as kube-scheduler writes them after it has read them."""
    config, out = folder / "config.yaml", folder / "written.yaml"
    certificates = folder / "certs"
    keep_certificates(certificates)
    extenders = extenders.replace(TLS_FOLDER, str(certificates / "scheduler"))
    head: Object = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig(folder))},
        "leaderElection": {"leaderElect": False},
    }
    config.write_text(yaml.safe_dump(head) + extenders)
    options = (f"--config={config}", f"--write-config-to={out}", "--secure-port=0")
    done = subprocess.run(
        [str(find("kube-scheduler")), *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text().replace(str(certificates / "scheduler"), TLS_FOLDER)
    written: list[Object] = yaml.safe_load(text).get("extenders") or []
    return written


def printed(policy: Path, *options: object) -> str:
    result = CliRunner().invoke(main, ["config", "extender", str(policy), *map(str, options)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "plugins",
    [
        ["NodeGroup", "ImageLocality"],
        ["InTree", "OneNodePerPipelineRun"],
        ["DecisionAnnotation"],
        ["Cards", "Fullest"],
        ["Cards", "Fullest", "Marks"],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("ignorable", [False, True])
def test_kube_scheduler_takes_every_entry(
    tmp_path: Path, plugins: list[str], ignorable: bool
) -> None:
    (tmp_path / "plugins.py").write_text(PLUGINS)
    enabled = {"enabled": [{"name": name} for name in plugins]}
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        json.dumps(
            {
                "apiVersion": "moorage.io/v1alpha1",
                "kind": "MoorageConfiguration",
                "profiles": [{"plugins": {"multiPoint": enabled}}],
            }
        )
    )
    options = ["--ignorable"] if ignorable else []
    text = printed(policy, "--plugin", tmp_path / "plugins.py", *options)
    ours: list[Object] = yaml.safe_load(text)["extenders"]
    theirs = understood(tmp_path, text)
    assert len(theirs) == len(ours)
    for our, their in zip(ours, theirs, strict=True):
        assert {key: their.get(key, False) for key in our} == our


def test_kube_scheduler_takes_the_shipped_configuration(tmp_path: Path) -> None:
    shipped = (ROOT / "deploy" / "files" / "kube-scheduler-config.yaml").read_text()
    (entry,) = understood(tmp_path, "extenders:\n" + shipped.partition("\nextenders:\n")[2])
    assert entry["urlPrefix"] == GATEWAY_URL
    assert "bindVerb" not in entry
