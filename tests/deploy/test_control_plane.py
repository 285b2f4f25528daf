"""The cluster's own kube-scheduler as a static pod: what nodes of the control plane get."""

import jsonpatch
import pytest
import yaml

from cli.config.extender import TLS_FOLDER
from tests.deploy.test_manifests import pod_spec, rules
from tools.manifests.rendering import Manifest, installed, one

STATIC_POD = {
    "spec": {
        "containers": [
            {
                "name": "kube-scheduler",
                "command": ["kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf"],
                "volumeMounts": [{"name": "kubeconfig", "mountPath": "/etc/kubernetes/x"}],
            }
        ],
        "volumes": [{"name": "kubeconfig", "hostPath": {"path": "/etc/kubernetes/x"}}],
    }
}
"""As kubeadm writes it, in part."""


@pytest.fixture(scope="module", params=["control-plane", "control-plane-strict"])
def layout(request: pytest.FixtureRequest) -> list[Manifest]:
    return installed(request.param)


def files(layout: list[Manifest]) -> dict[str, str]:
    data: dict[str, str] = one(layout, "ConfigMap", "control-plane")["data"]
    return data


def test_the_patch_lets_kube_scheduler_read_what_it_is_given(layout: list[Manifest]) -> None:
    patch = yaml.safe_load(files(layout)["kubeadm-patch.yaml"])
    spec = jsonpatch.apply_patch(STATIC_POD, patch)["spec"]
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    assert mounts == volumes
    assert container["command"][-1] == f"--config={mounts['moorage']}"
    assert mounts["moorage-tls"] == TLS_FOLDER


def test_a_static_pod_calls_an_address_and_checks_the_name(layout: list[Manifest]) -> None:
    config = yaml.safe_load(files(layout)["kube-scheduler-config.yaml"])
    (extender,) = config["extenders"]
    service = one(layout, "Service", "gateway")["spec"]
    assert extender["urlPrefix"] == f"https://{service['clusterIP']}:{service['ports'][0]['port']}"
    assert extender["tlsConfig"]["serverName"] == "moorage-gateway"
    assert extender["tlsConfig"]["keyFile"] == f"{TLS_FOLDER}/tls.key"
    # With --config kube-scheduler takes no notice of --kubeconfig.
    assert config["clientConnection"]["kubeconfig"] == "/etc/kubernetes/scheduler.conf"
    assert config["leaderElection"] == {"leaderElect": True}
    assert config["profiles"][0] == {"schedulerName": "default-scheduler"}


def test_own_pods_are_placed_while_the_gateway_is_down(layout: list[Manifest]) -> None:
    (extender,) = yaml.safe_load(files(layout)["kube-scheduler-config.yaml"])["extenders"]
    deployments = [m for m in layout if m["kind"] == "Deployment"]
    (own,) = {pod_spec(each)["schedulerName"] for each in deployments}
    if extender["ignorable"]:
        assert own == "default-scheduler"
        return
    plain = yaml.safe_load(files(layout)["plain-scheduler-config.yaml"])
    assert [each["schedulerName"] for each in plain["profiles"]] == [own]
    assert "extenders" not in plain
    pod = yaml.safe_load(files(layout)["plain-scheduler.yaml"])["spec"]
    (container,) = pod["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "config")
    assert f"--config={mount['mountPath']}" in container["command"]
    lease = plain["leaderElection"]["resourceName"]
    assert rules(layout, "Role", "plain-scheduler-lease") == {
        ("coordination.k8s.io", "leases", "create", ""),
        ("coordination.k8s.io", "leases", "get", lease),
        ("coordination.k8s.io", "leases", "update", lease),
    }


def test_there_is_no_second_scheduler(layout: list[Manifest]) -> None:
    assert not [m for m in layout if m["metadata"]["name"] == "scheduler"]
