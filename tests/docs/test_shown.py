"""What single pages show and say is so."""

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from cli.legacy.convert import convert
from cli.main import main
from moorage import Pod
from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.models.decoding import decode_pod
from moorage.testing import make_node, run_filter
from tests.e2e.placement.placeholder import ISOLATED, TEXT, Object, placeholder, task
from tests.needs import needed
from tools.docs.bench_tables import CLUSTERS, pods_per_second
from tools.docs.pages import DOCS, ROOT, blocks

COMPARISON = (DOCS / "explanation" / "comparison.md").read_text()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_sentences_about_any_extender_hold(cluster: str) -> None:
    pods = pods_per_second(cluster)
    none = pods.pop("no extender")
    assert "leaves less than 50 %" in COMPARISON
    assert pods["go nothing"] < 0.5 * none
    assert "takes more than twice as long" in COMPARISON
    assert max(pods.values()) < 0.5 * none


SIMULATE = DOCS / "how-to" / "operate" / "simulate.md"
NOTHING = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
PACE = re.compile(r"in [0-9.]+ s, [0-9]+ a second")


def test_the_example_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "now.yaml").write_text(NOTHING)
    monkeypatch.chdir(tmp_path)
    text = SIMULATE.read_text()
    (command,) = re.findall(r"^moorage (simulate .*deploy/demo.*)$", text, re.MULTILINE)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output
    assert PACE.sub("", shown) == PACE.sub("", result.stdout)


CONVERT = DOCS / "how-to" / "convert-policy.md"
POLICY = ROOT / "tests" / "data" / "legacy-policy.json"


def converted(language: str, begin: str = "") -> str:
    (block,) = (b for b in blocks(language) if b.page == CONVERT and b.text.startswith(begin))
    return block.text


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    file = Path("legacy-policy.json")
    file.write_text(POLICY.read_text())
    return convert(file, "default-scheduler")[1]


def test_the_lines_that_are_shown_are_said(notes: list[str]) -> None:
    lines = converted("text").splitlines()
    assert lines
    assert [line for line in lines if line not in notes] == []


def test_the_overlay_gives_plugins_and_policy_to_those_who_need_them(tmp_path: Path) -> None:
    kubectl = needed("kubectl")
    (overlay,) = (
        b.text
        for b in blocks("yaml")
        if b.page.name == "ship.md" and b.text.startswith("# kustomization.yaml")
    )
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "kustomization.yaml").write_text(overlay)
    (tmp_path / "max_temperature.py").write_text("# a plugin\n")
    (tmp_path / "policy.yaml").write_text("changed: true\n")
    done = subprocess.run(
        [kubectl, "kustomize", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
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


NODES = tuple(make_node(name) for name in ("n1", "n2", "n3"))


def model(obj: Object, node: str = "") -> Pod:
    metadata = {**obj["metadata"], "namespace": "default", "uid": obj["metadata"]["name"]}
    spec = {**obj["spec"], "nodeName": node}
    return decode_pod(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def feasible(obj: Object, *others: Pod) -> set[str]:
    verdicts = run_filter(InterPodAffinity(), model(obj), *NODES, pods=others)
    return {name for name, rejection in verdicts.items() if rejection is None}


def test_a_pod_of_the_run_goes_only_where_its_placeholder_is() -> None:
    assert feasible(task("build-1", "compile")) == set()
    others = model(placeholder("build-1"), "n2"), model(placeholder("build-2"), "n3")
    assert feasible(task("build-1", "compile"), *others) == {"n2"}


def test_runs_may_share_a_node_unless_they_are_isolated() -> None:
    shared = model(placeholder("build-1"), "n2")
    assert feasible(placeholder("build-2"), shared) == {"n1", "n2", "n3"}
    alone = model(placeholder("build-1", affinity=ISOLATED), "n2")
    assert feasible(placeholder("build-2", affinity=ISOLATED), alone) == {"n1", "n3"}


def test_the_commands_name_the_files_and_what_is_in_them() -> None:
    files = set(re.findall(r"-f (\S+)", TEXT))
    kinds = {yaml.safe_load((ROOT / file).read_text())["kind"] for file in files}
    assert kinds == {"StatefulSet", "Pod"}
    assert f"kubectl describe pod {task('build-1', 'compile')['metadata']['name']}`" in TEXT
    label = dict([re.findall(r"kubectl get pods -l (\S+)=(\S+)", TEXT)[0]])
    for obj in (task("build-1", "compile"), placeholder("build-1")):
        assert label.items() <= obj["metadata"]["labels"].items()
