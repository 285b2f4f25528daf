"""What people have becomes a workload."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.up.workload import DEFAULT_NODES, Workload, read_workload
from moorage.errors import ConfigurationError
from tests.cli.support import Object, dump, pod
from tools.planes.objects import node

PROFILES = ("moorage", "second")


def read(nodes: object = None, pods: object = None) -> Workload:
    nodes, pods = (None if v is None else str(v) for v in (nodes, pods))
    return read_workload(nodes, pods, PROFILES)


def names(objects: list[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def write(path: Path, *objects: Any) -> Path:
    path.write_text(yaml.safe_dump_all(objects) if path.suffix == ".yaml" else json.dumps(*objects))
    return path


def test_pods_on_nodes_are_there_before_others_are_placed(tmp_path: Path) -> None:
    placed = (pod(name, nodeName="n") for name in ("b", "d"))
    file = write(tmp_path / "all.yaml", node("n"), pod("a"), *placed, pod("c"))
    assert [*map(names, read(pods=file).pods_in_turn)] == [["b", "d"], ["a", "c"]]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_dump_of_a_cluster_is_read_without_what_the_server_set(
    tmp_path: Path, suffix: str
) -> None:
    running = pod("runs", nodeName="n") | {"status": {"phase": "Running"}}
    finished = [pod(p) | {"status": {"phase": p.capitalize()}} for p in ("succeeded", "failed")]
    listed = node("n", uid="u", resourceVersion="7", creationTimestamp="2024-01-01T00:00:00Z")
    file = write(tmp_path / f"dump.{suffix}", dump(listed, running, *finished, pod("waits")))

    workload = read(file, file)

    assert workload.nodes == [node("n")]
    assert names(workload.pods) == ["runs", "waits"]
    assert workload.pods[0]["spec"]["nodeName"] == "n"


def test_each_option_decides_for_its_kind_but_bound_pods_come_with_their_nodes(
    tmp_path: Path,
) -> None:
    bound = pod("bound", nodeName="n")
    cluster = write(tmp_path / "cluster.json", dump(node("n"), bound, pod("waits")))
    pods = write(tmp_path / "pods.yaml", node("other"), pod("new"))

    workload = read(cluster, pods)

    assert names(workload.nodes) == ["n"]
    assert names(workload.pods) == ["bound", "new"]
    notes = "\n".join(workload.notes)
    assert "1 of kind Pod left out: --pods is given" in notes
    assert "1 of kind Node left out: --nodes is given" in notes
    assert names(read(cluster, 1).pods) == ["bound", "pod-0000"]
    assert names(read(cluster, 0).nodes) == ["n"]
    assert read(0, cluster).nodes == []


def test_pods_of_other_schedulers_are_scheduled_here_unless_they_are_bound(tmp_path: Path) -> None:
    theirs = pod("theirs", schedulerName="volcano")
    bound = pod("bound", schedulerName="volcano", nodeName="n")
    ours = pod("ours", schedulerName="second")
    workload = read(pods=write(tmp_path / "pods.yaml", theirs, bound, ours, pod("default")))
    schedulers = [p["spec"].get("schedulerName") for p in workload.pods]
    assert schedulers == ["moorage", "volcano", "second", "moorage"]
    assert "pods of schedulerName volcano are scheduled as moorage here: 1" in workload.notes


def test_priority_classes_that_pods_name_are_made_with_the_pods_priority(tmp_path: Path) -> None:
    high: Object = {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"}
    system: Object = {"priorityClassName": "system-node-critical", "priority": 2000001000}
    low: Object = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    low["metadata"] = {"name": "low"}
    pods = [
        pod("a", **high),
        pod("b", **high),
        pod("c", **system),
        pod("d", priorityClassName="low"),
    ]
    workload = read(pods=write(tmp_path / "pods.yaml", low, *pods))
    assert names(workload.priority_classes) == ["low", "high"]
    made = workload.priority_classes[1]
    assert (made["value"], made["preemptionPolicy"]) == (1000, "Never")


def test_any_kind_is_taken_but_what_another_cluster_wrote_about_itself(tmp_path: Path) -> None:
    def obj(kind: str, **metadata: str) -> Object:
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": kind.lower(), **metadata}}

    written = [obj("CustomResourceDefinition"), obj("Rack"), obj("ConfigMap"), obj("Lease")]
    dumped = obj("Lease", uid="u", namespace="team")
    workload = read(pods=write(tmp_path / "pods.yaml", *written, dumped, pod("a")))
    assert names(workload.definitions) == ["customresourcedefinition"]
    assert names(workload.further) == ["rack", "configmap", "lease"]
    assert any("1 of kind Lease left out" in note for note in workload.notes)


def controlled(kind: str, name: str, **metadata: str) -> Object:
    spec = {"template": {"spec": {"containers": [], "priorityClassName": "high"}}}
    return {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def owned(obj: Object, kind: str, name: str) -> Object:
    reference = {"kind": kind, "name": name, "uid": "u", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def test_pods_of_a_dump_are_not_made_again(tmp_path: Path) -> None:
    file = write(
        tmp_path / "dump.yaml",
        controlled("Deployment", "web", uid="u"),
        owned(pod("web-5f7d8-abcde"), "ReplicaSet", "web-5f7d8"),
        controlled("StatefulSet", "db", uid="v"),
        controlled("Deployment", "other"),
    )
    workload = read(pods=file)
    assert names(workload.controlled) == ["other"]
    assert names(workload.further) == ["web", "db"]  # plugins read them
    for each in workload.further:
        assert each["metadata"]["annotations"] == {"sandbox.moorage.io/not-managed": ""}


def test_a_dump_without_pods_has_them_made(tmp_path: Path) -> None:
    file = write(
        tmp_path / "dump.yaml",
        controlled("Deployment", "web", uid="u"),
        owned(controlled("ReplicaSet", "web-5f7d8", uid="v"), "Deployment", "web"),
        controlled("Job", "done", uid="w") | {"status": {"completionTime": "2026-11-01T00:00:00Z"}},
    )
    assert names(read(pods=file).controlled) == ["web"]
    assert read(pods=file).made_pods == 1
    assert names(read(nodes=file, pods=1).further) == ["web", "web-5f7d8", "done"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Pod\n  metadata: {}\n", ":2: not YAML: "),
        ('{"kind": "List",\n "items": [}', ":2: not JSON: "),
        ("- kind: Pod\n", ": document 1 is no Kubernetes object: it has no kind"),
        ("apiVersion: v1\n", ": document 1 is no Kubernetes object: it has no kind"),
        ("kind: List\nitems: [3]\n", ": document 1: items[0] is no Kubernetes object"),
        ("kind: List\nitems: 3\n", ": document 1: items is no list"),
        ("kind: Pod\n", ": document 1: the Pod has no metadata"),
        ("kind: Pod\nmetadata: {}\n", ": document 1: the Pod has no name"),
        ("kind: Pod\napiVersion: 1\nmetadata: {name: a}\n", "apiVersion of the Pod must be text"),
        ("kind: Pod\nmetadata: {name: 3}\n", "name and namespace of the Pod must be text"),
        ("kind: Pod\nmetadata: {name: a}\n", ": pod a has no spec"),
        ("\0", ": neither YAML nor JSON: "),
        (yaml.safe_dump_all([pod("a"), pod("a")]), "Pod default/a is there twice"),
        ("kind: Job\nmetadata: {name: a}\nspec: {template: }\n", "a has no spec.template.spec"),
    ],
)
def test_a_file_of_something_else_is_refused_with_the_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "pods"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read(pods=file)
    assert str(caught.value).startswith(str(file))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_plugins_read_comes_with_its_namespaces(tmp_path: Path) -> None:
    def further(kind: str, name: str, phase: str = "", **metadata: str) -> Object:
        obj: Object = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}
        return {**obj, "status": {"phase": phase}} if phase else obj

    file = write(
        tmp_path / "all.yaml",
        controlled("StatefulSet", "db", namespace="team", uid="u"),
        owned(pod("db-0", "team"), "StatefulSet", "db"),
        further("PersistentVolume", "used", "Bound"),
        further("PersistentVolume", "old", "Released"),
        further("PersistentVolumeClaim", "data-db-0", namespace="other"),
    )
    workload = read(pods=file)
    assert names(workload.further) == ["db", "used", "data-db-0"]
    assert names(workload.namespaces) == ["team", "other"]
    assert "uid" not in workload.further[0]["metadata"]
    assert workload.size == 6 + DEFAULT_NODES + len(workload.priority_classes)
