"""StatefulSets: numbers, order and claims."""

from tests.sandbox.controllers.support import Workloads


async def test_pods_come_one_after_another_once_the_one_before_is_ready(
    workloads: Workloads,
) -> None:
    workloads.create("StatefulSet", replicas=3, serviceName="web")
    await workloads.until_status("StatefulSet", replicas=1)
    assert list(workloads.pods()) == ["web-0"]
    workloads.place("web-0")
    await workloads.until(lambda: list(workloads.pods()) == ["web-0", "web-1"])
    await workloads.until_ready(3)
    await workloads.until_status("StatefulSet", readyReplicas=3, updatedReplicas=3)
    labels = workloads.pods()["web-2"]["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-2"
    assert labels["apps.kubernetes.io/pod-index"] == "2"
    assert labels["controller-revision-hash"].startswith("web-")

    workloads.change("StatefulSet", replicas=1)
    await workloads.until(lambda: list(workloads.pods()) == ["web-0"])


async def test_parallel_pods_wait_for_nothing(workloads: Workloads) -> None:
    ordinals = {"start": 5}
    workloads.create("StatefulSet", replicas=2, podManagementPolicy="Parallel", ordinals=ordinals)
    await workloads.until(lambda: list(workloads.pods()) == ["web-5", "web-6"])


async def test_a_changed_template_replaces_all_pods(workloads: Workloads) -> None:
    workloads.create("StatefulSet", replicas=2)
    await workloads.until_ready(2)
    workloads.change_image("StatefulSet", "web:2")
    await workloads.until(lambda: workloads.images() == ["web:2"])
    await workloads.until_ready(2)
    assert workloads.images() == ["web:2"] * 2
    await workloads.until_status("StatefulSet", updatedReplicas=2, readyReplicas=2)


async def test_a_name_that_is_taken_is_an_event(workloads: Workloads) -> None:
    workloads.api.pod("web-0")
    workloads.create("StatefulSet", replicas=1)
    await workloads.until(lambda: workloads.events("FailedCreate"))
    assert workloads.events("FailedCreate") == ['Error creating: pods "web-0" already exists']
