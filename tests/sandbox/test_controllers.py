"""Deployments, ReplicaSets, StatefulSets and Jobs, also where the API server refuses their pods.

The test plays kube-scheduler, the server the kubelet.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from sandbox.apiserver import ApiServer, Settings
from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.table import parse
from sandbox.controllers import Controllers
from sandbox.workloads import RESOURCES
from tools.inprocess.api import Api, Object
from tools.waiting import until

NAMESPACE = "default"


class Workloads:
    """Creates workloads and looks at their pods."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.api = Api(server)

    def create(self, kind: str, name: str = "web", **spec: Any) -> Object:
        """Create a workload whose pods are called app=NAME, as kubectl would."""
        labels = {"app": name}
        container = {"name": "main", "image": "web:1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        whole: Object = {"selector": {"matchLabels": labels}, "template": template, **spec}
        if kind == "Job":
            del whole["selector"]
        version = RESOURCES[kind].api_version
        metadata = {"name": name, "namespace": NAMESPACE}
        obj = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": whole}
        return self.api.create(self._path(kind), obj)

    def change(self, kind: str, name: str = "web", **spec: Any) -> None:
        """Replace fields of a workload's spec."""
        old = self.read(kind, name)
        self.server.cluster.update(
            parse(f"{self._path(kind)}/{name}"), {**old, "spec": {**old["spec"], **spec}}
        )

    def change_image(self, kind: str, image: str, name: str = "web") -> None:
        template = msgspec.json.decode(
            msgspec.json.encode(self.read(kind, name)["spec"]["template"])
        )
        template["spec"]["containers"][0]["image"] = image
        self.change(kind, name, template=template)

    def read(self, kind: str, name: str = "web") -> Object:
        return self.api.read(f"{self._path(kind)}/{name}")

    def all(self, kind: str) -> dict[str, Object]:
        """Return all objects of a kind by name."""
        objects = self.server.cluster.store.objects(RESOURCES[kind].stored_as)
        return {obj["metadata"]["name"]: obj for obj in objects}

    def pods(self) -> dict[str, Object]:
        return self.all("Pod")

    def images(self) -> list[str]:
        """Return the images of all pods, sorted."""
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods().values())

    def events(self, reason: str) -> list[str]:
        """Return the messages of the events with a reason."""
        found = self.server.cluster.store.objects("events")
        return [str(event["message"]) for event in found if event["reason"] == reason]

    def delete(self, kind: str, name: str) -> None:
        self.api.delete(f"{self._path(kind)}/{name}")

    def place(self, *names: str) -> None:
        """Bind pods, by default all that have no node; the kubelet then starts them."""
        for name, pod in self.pods().items():
            if (names and name not in names) or pod["spec"].get("nodeName"):
                continue
            self.api.bind(name, "n1")

    async def until_pods(self, count: int) -> None:
        await until(lambda: len(self.pods()) == count)

    async def until_ready(self, count: int) -> None:
        """Place pods until so many are ready."""

        def ready() -> bool:
            self.place()
            found = [
                condition
                for pod in self.pods().values()
                for condition in pod["status"].get("conditions", ())
                if (condition["type"], condition["status"]) == ("Ready", "True")
            ]
            return len(found) == count

        await until(ready)

    async def until_status(self, kind: str, **fields: Any) -> None:
        """Wait until the status of the workload has these fields."""

        def equal() -> bool:
            status = self.read(kind).get("status", {})
            return all(status.get(key) == value for key, value in fields.items())

        await until(equal)

    def condition(self, kind: str, condition: str) -> tuple[str, str]:
        """Return status and reason of a condition of the workload."""
        conditions = self.read(kind)["status"]["conditions"]
        (found,) = (each for each in conditions if each["type"] == condition)
        return found["status"], found["reason"]

    @staticmethod
    def _path(kind: str) -> str:
        resource = RESOURCES[kind]
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        return f"{root}/namespaces/{NAMESPACE}/{resource.plural}"


@pytest.fixture
async def workloads() -> AsyncIterator[Workloads]:
    settings = Settings(run_bound_pods=True, run_delay_seconds=0.01)
    async with ApiServer(settings) as server:
        Controllers(server.cluster)
        workloads = Workloads(server)
        workloads.api.node("n1")
        yield workloads


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
    await until(lambda: list(workloads.pods()) not in ([], [first]))
    (second,) = workloads.pods()
    pod = workloads.pods()[second]
    workloads.server.cluster.store.put("/pods", pod | {"status": {"phase": "Failed"}})
    await workloads.until_pods(2)


async def test_a_changed_template_replaces_all_pods(workloads: Workloads) -> None:
    workloads.create("Deployment", replicas=3)
    await workloads.until_status("Deployment", replicas=3, readyReplicas=0, unavailableReplicas=3)
    assert workloads.condition("Deployment", "Available") == ("False", "MinimumReplicasUnavailable")
    await workloads.until_ready(3)
    await workloads.until_status("Deployment", availableReplicas=3, unavailableReplicas=0)
    assert workloads.condition("Deployment", "Available") == ("True", "MinimumReplicasAvailable")
    (before,) = workloads.all("ReplicaSet")
    workloads.change_image("Deployment", "web:2")
    await until(lambda: workloads.images() == ["web:2"] * 3)
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
    await until(lambda: workloads.events("FailedCreate"))
    (message,) = workloads.events("FailedCreate")
    assert message.startswith("Error creating: Pod ")
    assert "spec.containers[0].image: Required value" in message
    assert workloads.images() == ["web:1"]  # none goes before its successor is there
    workloads.change_image("Deployment", "web:3")
    await until(lambda: workloads.images() == ["web:3"] * 2)


async def test_nonsense_in_one_workload_stops_no_other(workloads: Workloads) -> None:
    template = {"metadata": {"labels": {"app": "odd"}}, "spec": 1}
    workloads.create("ReplicaSet", "odd", replicas=1, template=template)
    workloads.create("ReplicaSet", replicas=1)
    await workloads.until_pods(1)
    await until(lambda: workloads.events("FailedReconcile"))


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


async def test_pods_come_one_after_another_once_the_one_before_is_ready(
    workloads: Workloads,
) -> None:
    workloads.create("StatefulSet", replicas=3, serviceName="web")
    await workloads.until_status("StatefulSet", replicas=1)
    assert list(workloads.pods()) == ["web-0"]
    workloads.place("web-0")
    await until(lambda: list(workloads.pods()) == ["web-0", "web-1"])
    await workloads.until_ready(3)
    await workloads.until_status("StatefulSet", readyReplicas=3, updatedReplicas=3)
    labels = workloads.pods()["web-2"]["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-2"
    assert labels["apps.kubernetes.io/pod-index"] == "2"
    assert labels["controller-revision-hash"].startswith("web-")

    workloads.change("StatefulSet", replicas=1)
    await until(lambda: list(workloads.pods()) == ["web-0"])


async def test_parallel_pods_wait_for_nothing_and_begin_where_ordinals_do(
    workloads: Workloads,
) -> None:
    ordinals = {"start": 5}
    workloads.create("StatefulSet", replicas=2, podManagementPolicy="Parallel", ordinals=ordinals)
    await until(lambda: list(workloads.pods()) == ["web-5", "web-6"])


async def test_a_changed_template_of_a_stateful_set_replaces_all_pods(workloads: Workloads) -> None:
    workloads.create("StatefulSet", replicas=2)
    await workloads.until_ready(2)
    workloads.change_image("StatefulSet", "web:2")
    await until(lambda: workloads.images() == ["web:2"])
    await workloads.until_ready(2)
    assert workloads.images() == ["web:2"] * 2
    await workloads.until_status("StatefulSet", updatedReplicas=2, readyReplicas=2)


async def test_a_name_that_is_taken_is_an_event(workloads: Workloads) -> None:
    workloads.api.pod("web-0")
    with capture_logs() as logs:
        workloads.create("StatefulSet", replicas=1)
        await until(lambda: logs)
    assert (logs[0]["event"], logs[0]["name"]) == ("tried again", "web")
    assert workloads.events("FailedCreate") == ['Error creating: pods "web-0" already exists']


RUN_SECONDS = "sandbox.moorage.io/run-seconds"


def template(seconds: str) -> Object:
    container = {"name": "main", "image": "job:1"}
    return {
        "metadata": {"annotations": {RUN_SECONDS: seconds}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def end(workloads: Workloads, phase: str, count: int = 1) -> None:
    """Let running pods end, as their kubelet would say."""
    running = [
        pod for pod in workloads.pods().values() if pod["status"]["phase"] in ("Pending", "Running")
    ]
    for pod in running[:count]:
        status = {**pod["status"], "phase": phase}
        workloads.server.cluster.store.put("/pods", pod | {"status": status})


async def test_an_annotation_says_how_long_they_run(workloads: Workloads) -> None:
    workloads.create("Job", parallelism=2, completions=5, template=template("0.02"))

    def done() -> bool:
        workloads.place()
        return bool(workloads.read("Job").get("status", {}).get("completionTime"))

    await until(done)
    assert workloads.condition("Job", "Complete") == ("True", "CompletionsReached")
    await workloads.until_status("Job", succeeded=5, active=0)
    assert len(workloads.pods()) == 5


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", "1e99", "1_0"])
async def test_an_annotation_that_is_no_number_of_seconds_is_refused(
    workloads: Workloads, seconds: str
) -> None:
    metadata = {"name": "p", "namespace": "default", "annotations": {RUN_SECONDS: seconds}}
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "web"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    with pytest.raises(StatusError, match="must be a number of seconds such as 30"):
        workloads.api.create("/api/v1/namespaces/default/pods", pod)


async def test_without_completions_the_first_success_means_that_no_work_is_left(
    workloads: Workloads,
) -> None:
    workloads.create("Job", parallelism=3)
    await workloads.until_pods(3)
    end(workloads, "Succeeded")
    await workloads.until_status("Job", succeeded=1, active=2)
    end(workloads, "Succeeded", 2)
    await workloads.until_status("Job", succeeded=3, active=0)
    assert workloads.condition("Job", "Complete")[0] == "True"


async def test_too_many_failures_end_it(workloads: Workloads) -> None:
    workloads.create("Job", completions=4, parallelism=2, backoffLimit=1)
    await workloads.until_pods(2)
    end(workloads, "Failed")
    await workloads.until_pods(3)
    end(workloads, "Failed")
    await workloads.until_status("Job", failed=2, active=0)
    assert workloads.condition("Job", "Failed") == ("True", "BackoffLimitExceeded")


async def test_pods_of_an_indexed_job_have_the_numbers_that_are_not_done(
    workloads: Workloads,
) -> None:
    workloads.create("Job", completions=3, parallelism=2, completionMode="Indexed")
    await workloads.until_pods(2)
    end(workloads, "Succeeded", 2)
    await workloads.until_pods(3)
    names = [name.rpartition("-")[0] for name in workloads.pods()]
    assert names == ["web-0", "web-1", "web-2"]
    annotation = "batch.kubernetes.io/job-completion-index"
    indexes = [pod["metadata"]["annotations"][annotation] for pod in workloads.pods().values()]
    assert indexes == ["0", "1", "2"]


async def test_a_suspended_job_has_no_pods(workloads: Workloads) -> None:
    workloads.create("Job", parallelism=2, completions=2)
    await workloads.until_pods(2)
    workloads.change("Job", suspend=True)
    await workloads.until_pods(0)
    workloads.change("Job", suspend=False)
    await workloads.until_pods(2)


PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_pods_that_were_refused_come_without_another_change_of_their_workload(
    workloads: Workloads,
) -> None:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "main", "image": "web:1"}], "priorityClassName": "later"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    workloads.create("ReplicaSet", replicas=1, template=template)
    await until(lambda: workloads.events("FailedCreate"))
    assert "no PriorityClass with name later was found" in workloads.events("FailedCreate")[0]
    metadata = {"name": "later"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    workloads.api.create(PRIORITY_CLASSES, {**kind, "metadata": metadata})
    await workloads.until_pods(1)
    assert len(workloads.events("FailedCreate")) == 1  # the same is told once
