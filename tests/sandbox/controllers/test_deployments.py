"""Deployments and ReplicaSets."""

import re

from tests.sandbox.controllers.support import Workloads


async def test_a_deployment_makes_pods_as_kubernetes_names_and_labels_them(
    workloads: Workloads,
) -> None:
    deployment = workloads.create("Deployment", replicas=2)
    await workloads.until_pods(2)
    ((name, replica_set),) = workloads.all("ReplicaSet").items()
    number = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert name == f"web-{number}"
    assert re.fullmatch("[bcdf-hj-np-tv-xz2456789]{1,10}", number)
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
    for pod_name, pod in workloads.pods().items():
        assert re.fullmatch(rf"{name}-[a-z0-9]{{5}}", pod_name)
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": number}
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", name, True)
        assert owner["uid"] == replica_set["metadata"]["uid"]


async def test_the_status_follows_the_pods(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=2)
    await workloads.until_status("Deployment", replicas=2, readyReplicas=0, unavailableReplicas=2)
    assert workloads.condition("Deployment", "Available") == ("False", "MinimumReplicasUnavailable")
    await workloads.until_ready(2)
    await workloads.until_status(
        "Deployment", replicas=2, updatedReplicas=2, readyReplicas=2, availableReplicas=2
    )
    assert workloads.condition("Deployment", "Available") == ("True", "MinimumReplicasAvailable")
    assert workloads.condition("Deployment", "Progressing") == ("True", "NewReplicaSetAvailable")
    generation = workloads.read("Deployment")["metadata"]["generation"]
    assert workloads.read("Deployment")["status"]["observedGeneration"] == generation


async def test_scaling_up_and_down(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=1)
    await workloads.until_ready(1)
    (placed,) = workloads.pods()
    workloads.change("Deployment", replicas=250)
    await workloads.until_pods(250)
    workloads.change("Deployment", replicas=1)
    await workloads.until_pods(1)
    assert list(workloads.pods()) == [placed]  # those without a node went first
    messages = workloads.events("ScalingReplicaSet")
    assert sorted(m.partition("web-")[0] for m in messages) == [
        "Scaled down replica set ",
        "Scaled up replica set ",
        "Scaled up replica set ",
    ]


async def test_a_deleted_pod_and_one_that_ended_are_replaced(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=1)
    await workloads.until_pods(1)
    (first,) = workloads.pods()
    workloads.delete("Pod", first)
    await workloads.until(lambda: list(workloads.pods()) not in ([], [first]))
    (second,) = workloads.pods()
    pod = workloads.pods()[second]
    workloads.server.cluster.store.put("/pods", pod | {"status": {"phase": "Failed"}})
    await workloads.until_pods(2)


async def test_a_changed_template_replaces_all_pods(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=3)
    await workloads.until_ready(3)
    (before,) = workloads.all("ReplicaSet")
    workloads.change_image("Deployment", "web:2")
    await workloads.until(lambda: workloads.images() == ["web:2"] * 3)
    await workloads.until_ready(3)
    await workloads.until_status("Deployment", replicas=3, updatedReplicas=3, availableReplicas=3)
    # What kubectl rollout status waits for.
    assert workloads.condition("Deployment", "Progressing") == ("True", "NewReplicaSetAvailable")
    assert before not in workloads.all("ReplicaSet")


async def test_a_template_that_is_refused_is_an_event_and_can_be_mended(
    workloads: Workloads,
) -> None:
    workloads.create("Deployment", replicas=1)
    await workloads.until_pods(1)
    workloads.change_image("Deployment", "")
    workloads.change("Deployment", replicas=2)
    await workloads.until(lambda: workloads.events("FailedCreate"))
    (message,) = workloads.events("FailedCreate")
    assert message.startswith("Error creating: Pod ")
    assert "spec.containers[0].image: Required value" in message
    assert workloads.images() == ["web:1"]  # none goes before its successor is there
    workloads.change_image("Deployment", "web:3")
    await workloads.until(lambda: workloads.images() == ["web:3"] * 2)


async def test_nonsense_in_one_workload_stops_no_other(workloads: Workloads) -> None:
    template = {"metadata": {"labels": {"app": "odd"}}, "spec": 1}
    workloads.create("ReplicaSet", "odd", replicas=1, template=template)
    workloads.create("ReplicaSet", replicas=1)
    await workloads.until_pods(1)
    await workloads.until(lambda: workloads.events("FailedReconcile"))


async def test_a_workload_whose_pods_somebody_else_makes_is_left_alone(
    workloads: Workloads,
) -> None:
    deployment = workloads.create("Deployment", "theirs", replicas=0)
    metadata = deployment["metadata"]
    marked = metadata | {"annotations": {"sandbox.moorage.io/not-managed": ""}}
    path = "/apis/apps/v1/namespaces/default/deployments/theirs"
    workloads.server.cluster.update(
        workloads.server.cluster.target(path), deployment | {"metadata": marked}
    )
    workloads.change("Deployment", "theirs", replicas=3)
    workloads.create("Deployment", replicas=1)
    await workloads.until_status("Deployment", replicas=1)
    assert {pod["metadata"]["labels"]["app"] for pod in workloads.pods().values()} == {"web"}
