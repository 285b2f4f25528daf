"""`moorage install`: what it renders, and an installation in the embedded cluster."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from cli.install.bundle import KUSTOMIZE
from cli.main import main
from tests.cli.support import moorage
from tools.manifests.rendering import render_kustomize

Object = dict[str, Any]

PLUGINS = """\
from moorage import BindPlugin, FilterPlugin

class OfMyOwn(FilterPlugin):
    def filter_node(self, pod, node):
        return None

class Marks(BindPlugin):
    async def pre_bind(self, binding):
        return None
"""

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


def install(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["install", *map(str, arguments)])


def printed(*arguments: object) -> dict[tuple[str, str], Object]:
    result = install("--print", *arguments)
    assert result.exit_code == 0, result.stderr
    objects = yaml.safe_load_all(result.stdout)
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def entries(objects: dict[tuple[str, str], Object], start: str = "kube-scheduler-") -> list[Object]:
    (found,) = (
        each
        for (kind, name), each in objects.items()
        if kind == "ConfigMap" and name.startswith(start)
    )
    extenders: list[Object] = yaml.safe_load(found["data"]["kube-scheduler-config.yaml"])[
        "extenders"
    ]
    return extenders


def container(objects: dict[tuple[str, str], Object], name: str) -> Object:
    pod = objects["Deployment", name]["spec"]["template"]["spec"]
    found: Object = pod["containers"][0]
    return found


def test_without_options_it_is_the_overlay(tmp_path: Path) -> None:
    overlay = render_kustomize(KUSTOMIZE / "overlays" / "second-scheduler")
    assert list(printed().values()) == overlay


def test_plugins_policy_and_image_are_installed(tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(PLUGINS)
    image = "registry.example.com:5000/moorage:1"
    objects = printed("--plugin", plugin, "--image", image, "--kubernetes", "v1.35.2")
    for name in ("filter", "binder"):
        assert container(objects, name)["args"] == ["--plugin=/plugins"]
        assert container(objects, name)["image"] == image
    assert "args" not in container(objects, "scorer")
    assert container(objects, "scheduler")["image"] == "registry.k8s.io/kube-scheduler:v1.35.2"
    policy = yaml.safe_load(objects["ConfigMap", "policy"]["data"]["policy.yaml"])
    enabled = policy["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert {each["name"] for each in enabled} == {"OfMyOwn", "Marks"}
    cycles, binds = entries(objects)
    assert ("filterVerb" in cycles, "bindVerb" in cycles) == (True, False)
    assert (binds["bindVerb"], binds["ignorable"]) == ("bind", False)


def test_components_add_what_they_are_for() -> None:
    objects = printed("--with", "cert-manager", "--with", "autoscaling")
    assert ("Certificate", "gateway") in objects
    assert "replicas" not in objects["Deployment", "scorer"]["spec"]


def test_moorages_own_pods_never_wait_for_their_own_binds(tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(PLUGINS)
    result = install("--print", "--layout=control-plane", "--plugin", plugin)
    assert result.exit_code == 1
    assert "take --layout control-plane-strict" in result.stderr
    objects = printed("--layout=control-plane-strict", "--plugin", plugin)
    own = objects["Deployment", "gateway"]["spec"]["template"]["spec"]["schedulerName"]
    data = objects["ConfigMap", "control-plane"]["data"]
    (profile,) = yaml.safe_load(data["plain-scheduler-config.yaml"])["profiles"]
    assert own == profile["schedulerName"]
    served = yaml.safe_load(data["kube-scheduler-config.yaml"])["profiles"]
    assert {each["schedulerName"] for each in served} == {"default-scheduler", "moorage"}
    assert [each["urlPrefix"] for each in entries(objects, "control-plane")] == [
        "https://10.96.88.88:8888"
    ] * 2


def test_the_gateways_address_is_where_kube_scheduler_calls() -> None:
    objects = printed("--layout=control-plane", "--gateway-address=10.0.0.9")
    assert objects["Service", "gateway"]["spec"]["clusterIP"] == "10.0.0.9"
    (entry,) = entries(objects, "control-plane")
    assert entry["urlPrefix"] == "https://10.0.0.9:8888"


def test_a_wrong_policy_is_refused_with_its_place(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofile: []\n")
    result = install("--print", "--policy", policy)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{policy}:")


async def test_it_installs_itself_in_a_cluster_and_again(tmp_path: Path) -> None:
    home, kubeconfig = tmp_path / "up", tmp_path / "kubeconfig"
    home.mkdir()
    async with moorage(home, "up", "--nodes=2", "--kubeconfig-out", kubeconfig) as cluster:
        await cluster.line("The cluster stays up")
        for written in ("9", "0"):
            place = tmp_path / written
            place.mkdir()
            given = ("--kubeconfig", kubeconfig, "--certs", tmp_path / "certs", "--timeout=40")
            async with moorage(place, "install", *given) as command:
                code, errors = await command.ended()
            assert code == 0, errors
            assert f"certificates: {written} written" in errors
            assert "gateway 1/1, scheduler 1/1, scorer 2/2\nInstalled" in errors


def test_a_cluster_that_cannot_be_reached_is_one_clear_line(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": ""}}
    document = {"clusters": [cluster], "contexts": [context], "current-context": "c"}
    kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **document}))
    result = install("--kubeconfig", kubeconfig)
    assert result.exit_code == 1
    assert result.stderr.startswith("moorage: `kubectl --kubeconfig=")
    assert "127.0.0.1:1 was refused" in result.stderr
