"""The deployments with more than one gateway, and with the cluster's own kube-scheduler."""

from typing import Any

import jsonpatch
import pytest
import yaml

from cli.config.extender import TLS_FOLDER
from gateway.settings import GatewaySettings
from moorage_host.settings import parse_settings
from tests.deploy.test_manifests import pod_spec, rules
from tools.manifests.rendering import DEPLOY, Manifest, installed, one


@pytest.fixture(scope="module")
def two_gateways() -> list[Manifest]:
    return installed("high-availability")


@pytest.fixture(scope="module")
def sidecar() -> list[Manifest]:
    return installed("sidecar")


def settings_of(container: dict[str, Any]) -> GatewaySettings:
    return parse_settings(GatewaySettings, "gateway", container["args"], {})


def test_two_gateways_elect_one_with_the_lease_that_they_may_write(
    two_gateways: list[Manifest],
) -> None:
    deployment = one(two_gateways, "Deployment", "gateway")
    (container,) = pod_spec(deployment)["containers"]
    settings = settings_of(container)
    assert deployment["spec"]["replicas"] == 2
    assert settings.leader_election == "lease"
    role = one(two_gateways, "Role", "gateway-lease")
    assert role["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert rules(two_gateways, "Role", "gateway-lease") == {
        ("coordination.k8s.io", "leases", "create", ""),
        ("coordination.k8s.io", "leases", "get", settings.lease_name),
        ("coordination.k8s.io", "leases", "update", settings.lease_name),
    }
    (subject,) = one(two_gateways, "RoleBinding", "gateway-lease")["subjects"]
    assert subject["name"] == pod_spec(deployment)["serviceAccountName"]


def test_a_rollout_does_not_wait_for_gateways_that_stand_by(two_gateways: list[Manifest]) -> None:
    spec = one(two_gateways, "Deployment", "gateway")["spec"]
    # Of two gateways one is ready; a rollout goes on only if it may be missing too.
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == spec["replicas"]


def test_one_gateway_needs_no_lease() -> None:
    base = installed("second-scheduler")
    (container,) = pod_spec(one(base, "Deployment", "gateway"))["containers"]
    assert settings_of(container).leader_election == "none"
    assert "gateway-lease" not in {m["metadata"]["name"] for m in base}


def test_each_kube_scheduler_calls_the_gateway_in_its_own_pod(sidecar: list[Manifest]) -> None:
    assert not [m for m in sidecar if m["metadata"]["name"] == "gateway" and "spec" in m]
    deployment = one(sidecar, "Deployment", "scheduler")
    pod = pod_spec(deployment)
    (gateway,) = pod["initContainers"]
    settings = settings_of(gateway)
    assert deployment["spec"]["replicas"] == 2
    assert gateway["restartPolicy"] == "Always"
    assert settings.leader_election == "none"
    assert settings.extender_host == "127.0.0.1"
    config = yaml.safe_load((DEPLOY / "files" / "kube-scheduler-config.yaml").read_text())
    assert config["leaderElection"]["leaderElect"] is True
    (extender,) = config["extenders"]
    (alias,) = pod["hostAliases"]
    address = f"https://{alias['hostnames'][0]}:{settings.extender_port}"
    assert (alias["ip"], extender["urlPrefix"]) == ("127.0.0.1", address)


def test_a_gateway_beside_kube_scheduler_is_as_safe_and_bounded_as_any(
    sidecar: list[Manifest],
) -> None:
    base = one(installed("second-scheduler"), "Deployment", "gateway")
    (usual,) = pod_spec(base)["containers"]
    (gateway,) = pod_spec(one(sidecar, "Deployment", "scheduler"))["initContainers"]
    for part in ("command", "image", "resources", "securityContext", "livenessProbe"):
        assert gateway[part] == usual[part]
    bindings = [m for m in sidecar if m["kind"] == "ClusterRoleBinding"]
    allowed = {b["roleRef"]["name"] for b in bindings for s in b["subjects"]}
    assert "moorage-gateway" in allowed
    (own,) = (b for b in bindings if b["metadata"]["name"] == "moorage-gateway")
    assert (
        own["subjects"][0]["name"]
        == pod_spec(one(sidecar, "Deployment", "scheduler"))["serviceAccountName"]
    )


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
