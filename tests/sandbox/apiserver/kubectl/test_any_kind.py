"""kubectl with objects of kinds that nothing here acts on, and with custom resources."""

import json
from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.kubectl.support import KUBECTL, Kubectl
from tests.sandbox.apiserver.resources.definitions import definition, version

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

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
    columns = [{"name": "Height", "type": "integer", "jsonPath": ".spec.height"}]
    height = {"type": "integer", "description": "Units from the floor to the top."}
    spec = {"type": "object", "properties": {"height": height, "room": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    served = version(additionalPrinterColumns=columns, schema=schema, subresources={"status": {}})
    kubectl.run("apply", "-f", "-", stdin=json.dumps(definition(served)))
    kubectl.run("wait", "crd/racks.example.com", "--for=condition=established", "--timeout=5s")
    yield
    kubectl.run("delete", "crd", "racks.example.com")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("configmap NAME --from-literal=a=b", "configmap"),
        ("secret generic NAME --from-literal=a=b", "secret"),
        ("deployment NAME --image=web:1 --replicas=3", "deployment.apps"),
        ("job NAME --image=web:1", "job.batch"),
        ("cronjob NAME --image=web:1 --schedule=@daily", "cronjob.batch"),
        ("service clusterip NAME --tcp=80:8080", "service"),
        ("serviceaccount NAME", "serviceaccount"),
        ("poddisruptionbudget NAME --selector=app=web --min-available=1", "poddisruptionbudget"),
    ],
    ids=lambda value: value.split()[0],
)
def test_create_makes_an_object(kubectl: Kubectl, name: str, words: str, kind: str) -> None:
    created = kubectl.run("create", *words.replace("NAME", name).split())
    assert created.startswith(kind)
    assert created.endswith(f"/{name} created\n")
    assert name in kubectl.run("get", kind.split(".")[0], name)
    assert "Name:" in kubectl.run("describe", kind.split(".")[0], name)
    assert "deleted" in kubectl.run("delete", kind.split(".")[0], name)


def test_what_create_writes_is_complete(kubectl: Kubectl, name: str) -> None:
    kubectl.run("create", "configmap", name, "--from-literal=a=b", "--from-literal=c=")
    assert kubectl.json("configmap", name)["data"] == {"a": "b", "c": ""}
    kubectl.run("create", "secret", "generic", name, "--from-literal=a=b")
    assert kubectl.json("secret", name)["data"] == {"a": "Yg=="}
    kubectl.run("create", "deployment", name, "--image=web:1", "--replicas=3", "--port=80")
    spec = kubectl.json("deployment", name)["spec"]
    assert (spec["replicas"], spec["selector"]) == (3, {"matchLabels": {"app": name}})
    assert spec["template"]["metadata"]["labels"] == {"app": name}
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("web", "web:1")
    assert container["ports"][0]["containerPort"] == 80
    kubectl.run("create", "service", "clusterip", name, "--tcp=80:8080")
    (port,) = kubectl.json("service", name)["spec"]["ports"]
    assert (port["port"], port["targetPort"], port["protocol"]) == (80, 8080, "TCP")
    kubectl.run("create", "job", name, "--image=web:1", "--", "sleep", "1")
    (container,) = kubectl.json("job", name)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sleep", "1"]
    kubectl.run("delete", "cm,secret,deploy,svc,job", name)


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
        assert (header.split(), row.split()[:2]) == (["NAME", "HEIGHT", "AGE"], [name, "10"])
    patch = '{"spec": {"height": 7}}'
    kubectl.run("patch", "rack", name, "--type=merge", "-p", patch)
    kubectl.run("label", "rack", name, "row=a")
    assert name in kubectl.run("get", "racks", "-l", "row=a")
    described = kubectl.run("describe", "rack", name)
    assert "Height:" in described
    assert "deleted" in kubectl.run("delete", "rack", name)


@pytest.mark.usefixtures("racks")
def test_resources_are_listed_and_explained(kubectl: Kubectl) -> None:
    listed = {line.split()[0]: line for line in kubectl.run("api-resources").splitlines()}
    assert "rk" in listed["racks"].split()
    assert {"configmaps", "deployments", "services", "deviceclasses"} <= listed.keys()
    assert "Units from the floor" in kubectl.run("explain", "rack.spec.height")
    explained = kubectl.run("explain", "configmap")
    assert "KIND:" in explained
    assert "ConfigMap" in explained


def test_create_of_other_kinds_names_the_way_around(kubectl: Kubectl, name: str) -> None:
    error = kubectl.run("create", "quota", name, "--hard=pods=3", code=1)
    assert "write a manifest and use kubectl apply" in error


def test_a_json_patch_with_a_test(kubectl: Kubectl, name: str) -> None:
    kubectl.run("create", "configmap", name, "--from-literal=a=b")
    test = '[{"op": "test", "path": "/data/a", "value": "c"}]'
    error = kubectl.run("patch", "cm", name, "--type=json", "-p", test, code=1)
    assert "invalid" in error
    replace = '[{"op": "replace", "path": "/data/a", "value": "c"}]'
    kubectl.run("patch", "cm", name, "--type=json", "-p", replace)
    assert kubectl.json("cm", name)["data"] == {"a": "c"}
    kubectl.run("delete", "cm", name)
