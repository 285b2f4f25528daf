"""The real kubectl against the server: what people type."""

import json
from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.kubectl.support import KUBECTL, Kubectl

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {zone: a, node-role.kubernetes.io/worker: ""}}
status:
  capacity: {cpu: "4", memory: 16Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  addresses: [{type: InternalIP, address: 10.0.0.1}]
  nodeInfo: {kubeletVersion: v1.36.0, osImage: Sandbox}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: web}}
spec:
  containers: [{name: main, image: "web:1", resources: {requests: {cpu: 500m, memory: 1Gi}}}]
"""


@pytest.fixture
def pod(kubectl: Kubectl, name: str) -> Iterator[str]:
    kubectl.run("create", "-f", "-", stdin=POD.replace("NAME", name))
    yield name
    kubectl.run("delete", "pod", name, "--ignore-not-found")


@pytest.fixture
def node(kubectl: Kubectl, name: str) -> Iterator[str]:
    kubectl.run("create", "-f", "-", stdin=NODE.replace("NAME", name))
    yield name
    kubectl.run("delete", "node", name, "--ignore-not-found")


def bind(kubectl: Kubectl, pod: str, node: str) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": "default"},
        "target": {"kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/default/pods/{pod}/binding"
    kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


def test_what_get_prints_as_json_can_be_given_back(kubectl: Kubectl, pod: str, node: str) -> None:
    printed = kubectl.run("get", f"pod/{pod}", f"node/{node}", "-o", "json")
    applied = kubectl.run("replace", "-f", "-", stdin=printed)
    assert applied == f"pod/{pod} replaced\nnode/{node} replaced\n"


def test_get_prints_columns_and_wide_ones(kubectl: Kubectl, pod: str) -> None:
    header, row = kubectl.run("get", "pods", pod).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == [pod, "0/1", "Pending", "0"]
    bind(kubectl, pod, "n7")
    header, row = kubectl.run("get", "pods", pod, "-o", "wide").splitlines()
    assert "NOMINATED NODE" in header
    assert "n7" in row.split()


def test_get_of_all_namespaces_and_kinds(kubectl: Kubectl, pod: str) -> None:
    lines = kubectl.run("get", "pods", "-A").splitlines()
    assert lines[0].split()[0] == "NAMESPACE"
    assert any(line.split()[:2] == ["default", pod] for line in lines)
    assert pod in kubectl.run("get", "all")
    assert f"pod/{pod}" in kubectl.run("get", "po,ns,no,pc,leases")


def test_output_as_json_yaml_names_and_paths(kubectl: Kubectl, pod: str) -> None:
    assert kubectl.json("pod", pod)["spec"]["schedulerName"] == "default-scheduler"
    assert kubectl.json("pods")["kind"] == "List"
    assert f"name: {pod}" in kubectl.run("get", "pod", pod, "-o", "yaml")
    assert f"pod/{pod}" in kubectl.run("get", "pods", "-o", "name")
    path = "jsonpath={.spec.containers[0].image}"
    assert kubectl.run("get", "pod", pod, "-o", path) == "web:1"
    assert pod in kubectl.run("get", "pods", "--sort-by=.metadata.name")


def test_watch_prints_changes_as_they_happen(kubectl: Kubectl, pod: str) -> None:
    with kubectl.start("get", "pods", pod, "-w", "-o", "wide") as watching:
        try:
            assert watching.stdout
            assert watching.stdout.readline().startswith("NAME")
            assert "<none>" in watching.stdout.readline()
            bind(kubectl, pod, "n7")
            changed = watching.stdout.readline().split()
        finally:
            watching.kill()
    assert changed[0] == pod
    assert "n7" in changed


def test_apply_twice_and_change(kubectl: Kubectl, name: str) -> None:
    manifest = NODE.replace("NAME", name)
    assert f"node/{name} created" in kubectl.run("apply", "-f", "-", stdin=manifest)
    assert f"node/{name} unchanged" in kubectl.run("apply", "-f", "-", stdin=manifest)
    changed = manifest.replace("zone: a", "rack: b")
    assert f"node/{name} configured" in kubectl.run("apply", "-f", "-", stdin=changed)
    labels = kubectl.json("node", name)["metadata"]["labels"]
    assert labels == {"rack": "b", "node-role.kubernetes.io/worker": ""}
    assert "deleted" in kubectl.run("delete", "-f", "-", stdin=manifest)


def test_diff_and_replace(kubectl: Kubectl, node: str) -> None:
    manifest = NODE.replace("NAME", node)
    assert kubectl.run("diff", "-f", "-", stdin=manifest) == ""
    changed = manifest.replace("zone: a", "zone: b")
    assert "+    zone: b" in kubectl.run("diff", "-f", "-", stdin=changed, code=1)
    assert "replaced" in kubectl.run("replace", "-f", "-", stdin=changed)
    assert kubectl.json("node", node)["metadata"]["labels"]["zone"] == "b"


def test_a_dry_run_creates_nothing(kubectl: Kubectl, name: str) -> None:
    manifest = POD.replace("NAME", name)
    printed = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=manifest)
    assert f"pod/{name} created (server dry run)" in printed
    assert "not found" in kubectl.run("get", "pod", name, code=1)


def test_label_annotate_and_patch(kubectl: Kubectl, pod: str) -> None:
    kubectl.run("label", "pod", pod, "tier=front")
    kubectl.run("annotate", "pod", pod, "example.com/a=b")
    kubectl.run("patch", "pod", pod, "-p", '{"metadata":{"labels":{"by":"patch"}}}')
    kubectl.run("label", "pod", pod, "app-")
    metadata = kubectl.json("pod", pod)["metadata"]
    assert metadata["labels"] == {"tier": "front", "by": "patch"}
    assert metadata["annotations"] == {"example.com/a": "b"}


def test_run_and_wait(kubectl: Kubectl, name: str) -> None:
    assert f"pod/{name} created" in kubectl.run("run", name, "--image=web:1")
    kubectl.run("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Pending", "--timeout=5s")
    kubectl.run("delete", "pod", name)
    kubectl.run("wait", f"pod/{name}", "--for=delete", "--timeout=5s")


def test_namespaces_come_and_go(kubectl: Kubectl, name: str) -> None:
    assert f"namespace/{name} created" in kubectl.run("create", "namespace", name)
    kubectl.run("run", "inside", "--image=web:1", "-n", name)
    kubectl.run("delete", "namespace", name)
    assert "not found" in kubectl.run("get", "namespace", name, code=1)
    assert "No resources found" in kubectl.run("get", "pods", "-n", name)


def test_mistakes_are_told_as_by_a_real_cluster(kubectl: Kubectl, pod: str) -> None:
    error = kubectl.run("get", "foos", code=1)
    assert 'the server doesn\'t have a resource type "foos"' in error
    error = kubectl.run("get", "pod", "none", code=1)
    assert 'Error from server (NotFound): pods "none" not found' in error
    error = kubectl.run("create", "-f", "-", stdin=POD.replace("NAME", pod), code=1)
    assert f'(AlreadyExists): error when creating "STDIN": pods "{pod}" already exists' in error
    bad = POD.replace("NAME", "bad").replace("containers:", "initContainers:")
    error = kubectl.run("create", "-f", "-", stdin=bad, code=1)
    assert 'The Pod "bad" is invalid: spec.containers: Required value' in error
    error = kubectl.run("run", "a", "--image=a", "-n", "nowhere", code=1)
    assert 'namespaces "nowhere" not found' in error


def test_the_server_can_be_asked_about_itself(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37" in kubectl.run("version")
    listed = kubectl.run("api-resources").splitlines()
    assert any(line.split()[:3] == ["pods", "po", "v1"] for line in listed)
    assert "coordination.k8s.io/v1" in kubectl.run("api-versions")
    assert kubectl.run("auth", "can-i", "create", "pods").endswith("yes\n")
    assert kubectl.run("get", "--raw", "/readyz") == "ok"
