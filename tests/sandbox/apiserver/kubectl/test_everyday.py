"""What people type every day about objects of any kind: kubectl's answer, or why there is none."""

import json
from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.kubectl.support import KUBECTL, Kubectl
from tests.sandbox.apiserver.resources.definitions import definition, version

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

OBJECTS = """
apiVersion: v1
kind: Node
metadata: {name: day-node}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: day}
spec: {containers: [{name: main, image: "web:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: day}
spec:
  selector: {matchLabels: {app: day}}
  template:
    metadata: {labels: {app: day}}
    spec: {containers: [{name: main, image: "web:1"}]}
---
apiVersion: v1
kind: Event
metadata: {name: day.1}
involvedObject: {kind: Pod, name: day, namespace: default}
reason: Placed
message: as planned
type: Normal
"""
TYPO = """
apiVersion: v1
kind: Pod
metadata: {name: day-typo}
spec: {schedulerNme: moorage, containers: [{name: main, image: "web:1"}]}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: day}
spec: {selector: {app: day}, ports: [{name: a, port: 80}, {name: b, port: PORT}]}
"""


@pytest.fixture(scope="module")
def objects(kubectl: Kubectl) -> Iterator[None]:
    kubectl.run("create", "-f", "-", stdin=OBJECTS)
    yield
    kubectl.run("delete", "-f", "-", "--ignore-not-found", stdin=OBJECTS)


WORKS = {
    "get all": "deployment.apps/day",
    "get events --sort-by=.lastTimestamp": "as planned",
    "events": "as planned",
    "cluster-info": "Kubernetes control plane is running at http://",
    "describe node day-node": "Capacity:",
    "auth can-i create pods": "yes",
    "scale deployment day --replicas=3": "deployment.apps/day scaled",
    "set image deployment/day main=web:2": "image updated",
    "set resources deployment/day --requests=cpu=1": "resource requirements updated",
    "expose deployment day --name=day-exposed --port=80": "service/day-exposed exposed",
    "get svc day-exposed": "day-exposed",
    "get deployment day -o custom-columns=R:.spec.replicas": "3",
    "patch deployment day --type=merge -p {\"spec\":{\"replicas\":2}}": "patched",
    "annotate pod day a=b": "annotated",
    "delete deployment day --cascade=orphan": "deleted",
}  # fmt: skip
WHY_NOT = {
    "logs day": "the sandbox runs no containers: there are no logs",
    "exec day -- ls": "there is nothing to run a command in",
    "attach day": "there is nothing to attach to",
    "get --raw /api/v1/namespaces/default/pods/day/portforward": "no ports to forward to",
    "cp day:/a /tmp/never": "the sandbox runs no containers",
    "top pods": "Metrics API not available",
    "create token default": "the sandbox has no authentication",
    "create role day --verb=get --resource=pods": "write a manifest and use kubectl apply",
    "create service clusterip day --tcp=80": "write a manifest and use kubectl apply",
    "create ingress day --rule=a.b/c=d:80": "write a manifest and use kubectl apply",
    "create quota day --hard=pods=3": "write a manifest and use kubectl apply",
    "get racks.nowhere.io": "doesn't have a resource type",
}


@pytest.mark.usefixtures("objects")
def test_what_people_type_works(kubectl: Kubectl) -> None:
    for words, printed in WORKS.items():
        assert printed in kubectl.run(*words.split()), words


@pytest.mark.usefixtures("objects")
def test_what_does_not_work_says_why_in_a_sentence(kubectl: Kubectl) -> None:
    for words, why in WHY_NOT.items():
        printed = kubectl.run(*words.split(), code=1)
        assert why in printed, words
        assert "panic" not in printed


def test_unknown_fields_are_refused_as_by_a_real_cluster(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "-f", "-", stdin=TYPO, code=1)
    assert 'strict decoding error: unknown field "spec.schedulerNme"' in refused
    warned = kubectl.run("create", "--validate=warn", "-f", "-", stdin=TYPO)
    assert warned.startswith('Warning: unknown field "spec.schedulerNme"')
    kubectl.run("delete", "pod", "day-typo")


def test_a_service_keeps_its_other_ports_when_one_changes(kubectl: Kubectl) -> None:
    for port in ("81", "82"):
        kubectl.run("apply", "-f", "-", stdin=SERVICE.replace("PORT", port))
    assert [each["port"] for each in kubectl.json("service", "day")["spec"]["ports"]] == [80, 82]
    kubectl.run("delete", "service", "day")


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}, {name: side, image: "side:1"}]
"""
RACK = """
apiVersion: example.com/v1
kind: Rack
metadata: {name: NAME}
spec: {height: 42, room: a}
"""


@pytest.fixture(scope="module")
def racks(kubectl: Kubectl) -> Iterator[None]:
    served = version(subresources={"status": {}})
    kubectl.run("apply", "-f", "-", stdin=json.dumps(definition(served)))
    kubectl.run("wait", "crd/racks.example.com", "--for=condition=established", "--timeout=5s")
    yield
    kubectl.run("delete", "crd", "racks.example.com")


def test_what_create_writes_is_complete(kubectl: Kubectl, name: str) -> None:
    kubectl.run("create", "configmap", name, "--from-literal=a=b", "--from-literal=c=")
    assert kubectl.json("configmap", name)["data"] == {"a": "b", "c": ""}
    kubectl.run("create", "deployment", name, "--image=web:1", "--replicas=3", "--port=80")
    spec = kubectl.json("deployment", name)["spec"]
    assert (spec["replicas"], spec["selector"]) == (3, {"matchLabels": {"app": name}})
    assert spec["template"]["metadata"]["labels"] == {"app": name}
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("web", "web:1")
    assert container["ports"][0]["containerPort"] == 80
    kubectl.run("create", "job", name, "--image=web:1", "--", "sleep", "1")
    (container,) = kubectl.json("job", name)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sleep", "1"]
    kubectl.run("delete", "cm,deploy,job", name)


def test_apply_changes_one_container_of_a_deployment(kubectl: Kubectl, name: str) -> None:
    manifest = DEPLOYMENT.replace("NAME", name)
    assert f"deployment.apps/{name} created" in kubectl.run("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl.run("apply", "-f", "-", stdin=manifest)
    changed = manifest.replace("side:1", "side:2")
    assert "configured" in kubectl.run("apply", "-f", "-", stdin=changed)
    containers = kubectl.json("deployment", name)["spec"]["template"]["spec"]["containers"]
    assert [each["image"] for each in containers] == ["web:1", "side:2"]
    row = kubectl.run("get", "deploy", name).splitlines()[1].split()
    assert row[:4] == [name, "0/2", "0", "0"]
    kubectl.run("set", "image", f"deployment/{name}", "main=web:2")
    kubectl.run("delete", "deploy", name)


@pytest.mark.usefixtures("racks")
def test_custom_resources_like_others(kubectl: Kubectl, name: str) -> None:
    manifest = RACK.replace("NAME", name)
    assert f"rack.example.com/{name} created" in kubectl.run("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl.run("apply", "-f", "-", stdin=manifest)
    changed = manifest.replace("height: 42", "height: 10").replace(", room: a", "")
    assert "configured" in kubectl.run("apply", "-f", "-", stdin=changed)
    assert kubectl.json("rack", name)["spec"] == {"height": 10}
    for words in (("racks", name), ("rk", name), ("racks.example.com", name)):
        header, row = kubectl.run("get", *words).splitlines()
        assert (header.split(), row.split()[0]) == (["NAME", "AGE"], name)
    patch = '{"spec": {"height": 7}}'
    kubectl.run("patch", "rack", name, "--type=merge", "-p", patch)
    kubectl.run("label", "rack", name, "row=a")
    assert name in kubectl.run("get", "racks", "-l", "row=a")
    described = kubectl.run("describe", "rack", name)
    assert "Height:" in described
    assert "deleted" in kubectl.run("delete", "rack", name)


@pytest.mark.usefixtures("racks")
def test_resources_are_listed(kubectl: Kubectl) -> None:
    listed = {line.split()[0]: line for line in kubectl.run("api-resources").splitlines()}
    assert "rk" in listed["racks"].split()
    assert {"configmaps", "deployments", "services", "deviceclasses"} <= listed.keys()


def test_a_json_patch_with_a_test(kubectl: Kubectl, name: str) -> None:
    kubectl.run("create", "configmap", name, "--from-literal=a=b")
    test = '[{"op": "test", "path": "/data/a", "value": "c"}]'
    error = kubectl.run("patch", "cm", name, "--type=json", "-p", test, code=1)
    assert "invalid" in error
    replace = '[{"op": "replace", "path": "/data/a", "value": "c"}]'
    kubectl.run("patch", "cm", name, "--type=json", "-p", replace)
    assert kubectl.json("cm", name)["data"] == {"a": "c"}
    kubectl.run("delete", "cm", name)
