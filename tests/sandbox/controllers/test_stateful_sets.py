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
    status = workloads.read("StatefulSet")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert labels["controller-revision-hash"] == status["updateRevision"]

    workloads.change("StatefulSet", replicas=1)
    await workloads.until(lambda: list(workloads.pods()) == ["web-0"])


async def test_parallel_pods_wait_for_nothing_and_keep_their_claims(workloads: Workloads) -> None:
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    workloads.create(
        "StatefulSet",
        replicas=2,
        podManagementPolicy="Parallel",
        ordinals={"start": 5},
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": request}],
    )
    await workloads.until(lambda: list(workloads.pods()) == ["web-5", "web-6"])
    claims = workloads.all("PersistentVolumeClaim")
    assert sorted(claims) == ["data-web-5", "data-web-6"]
    volumes = workloads.pods()["web-6"]["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-6"}}]
    uid = claims["data-web-6"]["metadata"]["uid"]
    workloads.delete("Pod", "web-6")
    await workloads.until_pods(2)
    assert workloads.all("PersistentVolumeClaim")["data-web-6"]["metadata"]["uid"] == uid


async def test_a_changed_template_applies_to_new_pods_only_and_says_so(
    workloads: Workloads,
) -> None:
    workloads.create("StatefulSet", replicas=2)
    await workloads.until_ready(2)
    workloads.change_image("StatefulSet", "web:2")
    await workloads.until(lambda: workloads.events("NoRollout"))
    workloads.delete("Pod", "web-0")
    await workloads.until(lambda: workloads.images() == ["web:1", "web:2"])
    status = workloads.read("StatefulSet")["status"]
    assert status["currentRevision"] != status["updateRevision"]


async def test_a_name_that_is_taken_is_an_event(workloads: Workloads) -> None:
    workloads.api.pod("web-0")
    workloads.create("StatefulSet", replicas=1)
    await workloads.until(lambda: workloads.events("FailedCreate"))
    assert workloads.events("FailedCreate") == ['Error creating: pods "web-0" already exists']
