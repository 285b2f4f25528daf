from moorage.models import (
    Container,
    OwnerReference,
    Resources,
    Taint,
    Toleration,
    decode_node,
    decode_pod,
    encode,
)
from moorage.testing import make_node, make_pod


def test_a_pod_without_arguments_waits_for_its_first_node() -> None:
    pod = make_pod()
    assert (pod.namespace, pod.name, pod.status.phase) == ("default", "pod", "Pending")
    assert pod.spec.scheduler_name == "moorage"
    assert pod.requests == {}
    assert len(pod.spec.containers) == 1


def test_uids_follow_from_names() -> None:
    assert make_pod("a") == make_pod("a")
    uids = {make_pod("a").uid, make_pod("b").uid, make_pod("a", namespace="team").uid}
    assert len(uids) == 3
    assert make_pod(uid="u-1").uid == "u-1"
    assert make_node("a").metadata.uid not in {"", make_node("b").metadata.uid}


def test_a_pod_has_what_the_test_asks_for() -> None:
    owner = OwnerReference(kind="Job", name="train", controller=True)
    extra = Container(image="b", resources=Resources(requests={"cpu": 1}))
    pod = make_pod(
        "train-0",
        labels={"app": "train"},
        owner=owner,
        requests={"cpu": "500m", "nvidia.com/gpu": 1},
        image="a",
        containers=[extra],
        images=["c"],
        overhead={"memory": "1Ki"},
        host_ports=[8080],
        claims=["data"],
        tolerations=[Toleration(operator="Exists")],
        gates=["quota"],
        priority=5,
    )
    assert pod.requests == {"cpu": 1500, "nvidia.com/gpu": 1, "memory": 1024}
    assert [container.image for container in pod.spec.containers] == ["a", "c", "b"]
    assert [port.host_port for port in pod.host_ports] == [8080]
    assert pod.claim_names == ("data",)
    assert pod.owner == owner
    assert pod.labels == {"app": "train"}
    assert (pod.spec.priority, pod.spec.scheduling_gates[0].name) == (5, "quota")


def test_a_pod_on_a_node_runs_there() -> None:
    pod = make_pod(node="n1")
    assert (pod.spec.node_name, pod.status.phase) == ("n1", "Running")
    assert make_pod(node="n1", phase="Succeeded").is_terminal


def test_a_node_is_ready_with_room_for_pods() -> None:
    node = make_node()
    assert node.allocatable == {"cpu": 4000, "memory": 16 * 2**30, "pods": 110}
    assert node.status.conditions[0].status == "True"
    assert node.metadata.labels == {"kubernetes.io/hostname": "node"}
    assert make_node(ready=False).status.conditions[0].status == "False"


def test_a_node_has_what_the_test_asks_for() -> None:
    taint = Taint(key="gpu", effect="NoSchedule")
    node = make_node(
        "n1",
        labels={"zone": "a"},
        annotations={"rack": "7"},
        allocatable={"cpu": "2", "nvidia.com/gpu": 8},
        taints=[taint],
        unschedulable=True,
        images={"web:1": 1000},
    )
    assert (node.name, node.metadata.labels["zone"]) == ("n1", "a")
    assert node.allocatable["cpu"] == 2000
    assert node.allocatable["nvidia.com/gpu"] == 8
    assert node.allocatable["pods"] == 110
    assert (node.spec.taints, node.spec.unschedulable) == ((taint,), True)
    assert node.status.images[0].names == ("web:1",)
    assert node.status.images[0].size_bytes == 1000
    assert node.metadata.annotations == {"rack": "7"}


def test_what_is_made_travels_like_what_is_read() -> None:
    pod, node = make_pod(requests={"cpu": 1}, node="n1"), make_node("n1", images={"a": 5})
    assert decode_pod(encode(pod)) == pod
    assert decode_node(encode(node)) == node
