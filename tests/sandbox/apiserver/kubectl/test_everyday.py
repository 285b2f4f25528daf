"""What people type every day, each with what kubectl prints: an answer, or why there is none."""

from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.kubectl.support import KUBECTL, Kubectl

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
    "explain pod.spec": "schedulerName\t<string>",
    "explain pod.spec.affinity": "FIELD: affinity <Affinity>",
    "explain deployment.spec.strategy.rollingUpdate": "maxSurge",
    "auth whoami": "system:masters",
    "auth can-i --list": "*.*",
    "debug day --image=busybox": "Defaulting debug container name",
    "create role day --verb=get --resource=pods": "role.rbac.authorization.k8s.io/day created",
    "create rolebinding day --role=day --user=me": "created",
    "scale deployment day --replicas=3": "deployment.apps/day scaled",
    "set image deployment/day main=web:2": "image updated",
    "set resources deployment/day --requests=cpu=1": "resource requirements updated",
    "expose deployment day --name=day-exposed --port=80": "service/day-exposed exposed",
    "get svc day-exposed": "ClusterIP",
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
    "create ingress day --rule=a.b/c=d:80": "write a manifest and use kubectl apply",
    "debug nobody --image=busybox": 'pods "nobody" not found',
    "get racks.nowhere.io": "doesn't have a resource type",
}


@pytest.mark.usefixtures("objects")
def test_what_people_type_works(kubectl: Kubectl) -> None:
    for words, printed in WORKS.items():
        assert printed in kubectl.run(*words.split()), words


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("words", WHY_NOT)
def test_what_does_not_work_says_why_in_a_sentence(kubectl: Kubectl, words: str) -> None:
    printed = kubectl.run(*words.split(), code=1)
    assert WHY_NOT[words] in printed
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
    applied = kubectl.run("apply", "--server-side", "-f", "-", stdin=SERVICE.replace("PORT", "82"))
    assert "records no field owners" in applied
    assert "service/day serverside-applied" in applied
    kubectl.run("delete", "service", "day")
