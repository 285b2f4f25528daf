"""Workloads that the API server refuses pods, and that are tried again."""

from tests.sandbox.controllers.support import Workloads

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_pods_that_were_refused_come_without_another_change_of_their_workload(
    workloads: Workloads,
) -> None:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "main", "image": "web:1"}], "priorityClassName": "later"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    workloads.create("ReplicaSet", replicas=1, template=template)
    await workloads.until(lambda: workloads.events("FailedCreate"))
    assert "no PriorityClass with name later was found" in workloads.events("FailedCreate")[0]
    metadata = {"name": "later"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    workloads.api.create(PRIORITY_CLASSES, {**kind, "metadata": metadata})
    await workloads.until_pods(1)
    assert len(workloads.events("FailedCreate")) == 1  # the same is told once


async def test_many_changes_at_once_are_one_reconciliation(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=1)
    for replicas in (40, 2, 30, 3):
        workloads.change("Deployment", replicas=replicas)
    await workloads.until_pods(3)
    assert len(workloads.events("ScalingReplicaSet")) == 1
