"""The real kubectl against the server: what people type, and why something does not work."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.apiserver.support import definition, node, pod, version
from tools.build import find, is_there


def program() -> str | None:
    """Return the newest kubectl that needs no building, if there is one."""
    if os.environ.get("MOORAGE_E2E") or is_there("kubectl"):
        return str(find("kubectl"))
    return shutil.which("kubectl")


KUBECTL = program()
Started = Callable[[str], subprocess.Popen[str]]
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in ("main", "side")]},
}
RACK = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r1"}}
FILES = {
    "node": {**node("day"), "metadata": {"name": "day", "labels": {"zone": "a"}}},
    "racked": {**node("day"), "metadata": {"name": "day", "labels": {"rack": "b"}}},
    "pod": pod(),
    "typo": pod("typo", schedulerNme="moorage"),
    "bad": {**pod("bad"), "spec": {"initContainers": [{"name": "main", "image": "web:1"}]}},
    "binding": {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n7"}},
    "event": {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "NAMESPACE"},
        "reason": "Placed",
        "message": "as planned",
        "type": "Normal",
    },
    "deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
    },
    "service": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
    },
    "racks": definition(version(subresources={"status": {}})),
    "rack": {**RACK, "spec": {"height": 42, "room": "a"}},
    "smaller": {**RACK, "spec": {"height": 10}},
}
IMAGES = "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}"

# What is typed, where `!` says that it fails, and a part of what is printed.
SESSIONS = {
    "pods are shown in every form": [
        ("create -f pod.json", "pod/web created"),
        ("get pods", "NAME READY STATUS RESTARTS AGE\nweb 0/1 Pending 0"),
        ("create --raw /api/v1/namespaces/NAMESPACE/pods/web/binding -f binding.json", ""),
        ("get pods web -o wide", "n7"),
        ("get pods -A", "web 0/1 Pending"),
        ("get all", "pod/web"),
        ("get po,ns,no,pc,leases", "pod/web"),
        ("get pods -o name", "pod/web\n"),
        ("get pods -o json", '"kind": "List"'),
        ("get pod web -o yaml", "schedulerName: default-scheduler"),
        ("get pods --sort-by=.metadata.name -o jsonpath={..image}", "web:1"),
        ("get pod web -o json | $KUBECTL replace -f -", "pod/web replaced"),
        ("wait pod/web --for=jsonpath={.status.phase}=Pending --timeout=5s", "condition met"),
        ("create -f event.json", "created"),
        ("get events --sort-by=.lastTimestamp", "as planned"),
        ("events", "as planned"),
        ("delete pod web", "deleted"),
        ("wait pod/web --for=delete --timeout=5s", ""),
        ("! get pod web", 'Error from server (NotFound): pods "web" not found'),
    ],
    "objects are changed": [
        ("apply -f node.json", "node/day created"),
        ("apply -f node.json", "node/day unchanged"),
        ("diff -f node.json", ""),
        ("! diff -f racked.json", "+ rack: b"),
        ("apply -f racked.json", "node/day configured"),
        ("get node day -o jsonpath={.metadata.labels}", '{"rack":"b"}'),
        ("replace -f node.json", "replaced"),
        ("describe node day", "Capacity:"),
        ("label node day row=c zone-", "modified"),
        ("annotate node day a=b", "annotated"),
        ('patch node day -p \'{"metadata":{"labels":{"by":"patch"}}}\'', "patched"),
        ("get node day -o jsonpath={.metadata.labels}", '{"by":"patch","row":"c"}'),
        ("delete -f node.json", "deleted"),
        ("create configmap map --from-literal=a=b --from-literal=c=", "created"),
        *(
            (f"{result} patch cm map --type=json -p '[{test}, {replace}]'", printed)
            for replace in ['{"op": "replace", "path": "/data/a", "value": "d"}']
            for result, value, printed in (("!", "c", "invalid"), ("", "b", "patched"))
            for test in [f'{{"op": "test", "path": "/data/a", "value": "{value}"}}']
        ),
        ("get cm map -o jsonpath={.data}", '{"a":"d","c":""}'),
        ("create --dry-run=server -f pod.json", "pod/web created (server dry run)"),
        ("! get pod web", "not found"),
    ],
    "workloads": [
        ("apply -f deployment.json", "deployment.apps/web created"),
        ("apply -f deployment.json", "unchanged"),
        ("get deploy web", "web 0/2 0 0"),
        ("set image deployment/web side=side:2", "image updated"),
        (IMAGES, "main:1 side:2"),
        ("set resources deployment/web --requests=cpu=1", "resource requirements updated"),
        ("scale deployment web --replicas=3", "deployment.apps/web scaled"),
        ("get deployment web -o custom-columns=R:.spec.replicas", "R\n3"),
        ("expose deployment web --name=exposed --port=80", "service/exposed exposed"),
        ("delete deployment web --cascade=orphan", "deleted"),
        ("create deployment web --image=web:3 --replicas=3 --port=80", "created"),
        (IMAGES, "web:3"),
        ("create job web --image=web:1 -- sleep 1", "created"),
        ("get job web -o jsonpath={..command}", '["sleep","1"]'),
        ("apply -f service.json", "created"),
        (
            "get service web -o yaml | sed 's/port: 81/port: 82/' | $KUBECTL apply -f -",
            "configured",
        ),
        ("get service web -o jsonpath={.spec.ports[*].port}", "80 82"),
    ],
    "custom resources are like others": [
        ("apply -f racks.json", "created"),
        ("wait crd/racks.example.com --for=condition=established --timeout=5s", "condition met"),
        ("api-resources", "racks rk example.com/v1"),
        ("apply -f rack.json", "rack.example.com/r1 created"),
        ("apply -f rack.json", "unchanged"),
        ("apply -f smaller.json", "configured"),
        ("get rack r1 -o jsonpath={.spec}", '{"height":10}'),
        *((f"get {name} r1", "NAME AGE\nr1 ") for name in ("racks", "rk", "racks.example.com")),
        ('patch rack r1 --type=merge -p \'{"spec": {"height": 7}}\'', "patched"),
        ("label rack r1 row=a", "labeled"),
        ("get racks -l row=a", "r1"),
        ("describe rack r1", "Height: 7"),
        ("delete rack r1", "deleted"),
        ("delete crd racks.example.com", "deleted"),
    ],
    "the server is asked about itself": [
        ("version", "Server Version: v1.37"),
        ("cluster-info", "Kubernetes control plane is running at http://"),
        ("api-resources", "pods po v1"),
        ("api-versions", "coordination.k8s.io/v1"),
        ("auth can-i create pods", "yes"),
        ("get --raw /readyz", "ok"),
        ("create namespace other", "namespace/other created"),
        ("run inside --image=web:1 -n other", "pod/inside created"),
        ("delete namespace other", "deleted"),
        ("! get namespace other", "not found"),
        ("get pods -n other", "No resources found"),
    ],
    "mistakes are told as by a real cluster": [
        ("create -f pod.json", "created"),
        ("! create -f pod.json", '(AlreadyExists): error when creating "pod.json": pods "web" al'),
        ("! create -f bad.json", 'The Pod "bad" is invalid: spec.containers: Required value'),
        ("! run a --image=a -n nowhere", 'namespaces "nowhere" not found'),
        ("! get foos", 'the server doesn\'t have a resource type "foos"'),
        ("! apply -f typo.json", 'strict decoding error: unknown field "spec.schedulerNme"'),
        ("create --validate=warn -f typo.json", 'Warning: unknown field "spec.schedulerNme"'),
    ],
    "what a sandbox cannot do says why": [
        ("create -f pod.json", "created"),
        ("! logs web", "the sandbox runs no containers: there are no logs"),
        ("! exec web -- ls", "there is nothing to run a command in"),
        ("! attach web", "there is nothing to attach to"),
        ("! get --raw /api/v1/namespaces/NAMESPACE/pods/web/portforward", "no ports to forward to"),
        ("! cp web:/a never", "the sandbox runs no containers"),
        ("! top pods", "Metrics API not available"),
        ("! create token default", "the sandbox has no authentication"),
        *(
            (f"! create {words}", "write a manifest and use kubectl apply")
            for words in (
                *("role day --verb=get --resource=pods", "service clusterip day --tcp=80"),
                *("ingress day --rule=a.b/c=d:80", "quota day --hard=pods=3"),
            )
        ),
    ],
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One API server, as a process, for all sessions."""
    file = tmp_path_factory.mktemp("home") / "kubeconfig"
    command = [sys.executable, "-m", "sandbox.apiserver", f"--kubeconfig-out={file}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            server.stdout.readline()
            yield file
        finally:
            server.terminate()


@pytest.fixture
def started(kubeconfig: Path, tmp_path: Path) -> Started:
    """Start kubectl in a folder with the files, and with a namespace of its own."""
    namespace = f"ns-{tmp_path.name.replace('_', '-').lower()}"[-60:].strip("-")
    for name, obj in FILES.items():
        text = json.dumps(obj).replace("NAMESPACE", namespace)
        (tmp_path / f"{name}.json").write_text(text)
    config = json.loads(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "KUBECTL": str(KUBECTL)}

    def start(words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            f"$KUBECTL {words.replace('NAMESPACE', namespace)}",
            shell=True,
            cwd=tmp_path,
            env={**environment, "KUBECONFIG": "kubeconfig"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    run(start, "create namespace NAMESPACE")
    return start


def run(started: Started, words: str) -> str:
    """Run it to its end, by a failure if the words begin with `!`; return what it printed."""
    with started(words.removeprefix("! ")) as process:
        printed, _ = process.communicate(timeout=50)
    assert process.returncode == words.startswith("!"), f"{words}: {printed}"
    return "\n".join(" ".join(line.split()) for line in printed.split("\n"))


@pytest.mark.parametrize("session", SESSIONS)
def test_what_people_type(started: Started, session: str) -> None:
    for words, expected in SESSIONS[session]:
        printed = run(started, words)
        assert expected in printed, f"{words}: {printed}"


def test_watch_prints_changes_as_they_happen(started: Started) -> None:
    run(started, "create -f pod.json")
    with started("get pods web -w -o wide") as watching:
        try:
            assert watching.stdout
            assert watching.stdout.readline().startswith("NAME")
            assert "<none>" in watching.stdout.readline()
            path = "/api/v1/namespaces/NAMESPACE/pods/web/binding"
            run(started, f"create --raw {path} -f binding.json")
            changed = watching.stdout.readline().split()
        finally:
            watching.kill()
    assert changed[0] == "web"
    assert "n7" in changed
