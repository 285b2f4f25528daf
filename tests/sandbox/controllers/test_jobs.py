"""Jobs: parallelism, completions, and pods that end."""

from typing import Any

import pytest

from sandbox.apiserver.errors import StatusError
from tests.sandbox.controllers.support import Workloads
from tools.inprocess.api import Object

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


async def test_pods_of_a_job_run_until_they_are_deleted(workloads: Workloads) -> None:
    job = workloads.create("Job", parallelism=2, completions=3)
    await workloads.until_ready(2)
    await workloads.until_status("Job", active=2, ready=2, succeeded=0)
    for pod in workloads.pods().values():
        labels = pod["metadata"]["labels"]
        assert labels["job-name"] == "web"
        assert labels["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
    selector = workloads.read("Job")["spec"]["selector"]["matchLabels"]
    assert selector == {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}


async def test_an_annotation_says_how_long_they_run(workloads: Workloads) -> None:
    workloads.create("Job", parallelism=2, completions=5, template=template("0.02"))

    def done() -> bool:
        workloads.place()
        return bool(workloads.read("Job").get("status", {}).get("completionTime"))

    await workloads.until(done)
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
