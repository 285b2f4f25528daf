"""Jobs: pods that run until enough of them have succeeded."""

from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.store import now, stamp
from sandbox.controllers.objects import (
    MOST_AT_ONCE,
    Objects,
    condition,
    is_active,
    is_ready,
    phase,
    pod_of,
    with_times,
    worth,
)

INDEX = "batch.kubernetes.io/job-completion-index"


def reconcile(objects: Objects, job: Object) -> None:
    """Make pods, or delete them, until as many run as wanted.

    Raises:
        StatusError: The API server refuses a pod.
    """
    end = _end(job, objects.pods_of(job))
    try:
        active = list(filter(is_active, objects.pods_of(job)))
        missing = (0 if end else _wanted(job, objects.pods_of(job))) - len(active)
        if missing < 0:
            for pod in sorted(active, key=worth)[:-missing]:
                objects.delete(pod)
        for _ in range(min(missing, MOST_AT_ONCE)):
            objects.create(_pod(job, objects.pods_of(job)), job)
    finally:
        objects.set_status(job, _status(job, objects.pods_of(job), end))


def _end(job: Object, pods: list[Object]) -> Object | None:
    """Return the condition with which the Job has ended, if it has."""
    for known in job.get("status", {}).get("conditions", ()):
        if known["type"] in ("Complete", "Failed"):
            return {key: known[key] for key in ("type", "status", "reason", "message")}
    if _count(pods, "Failed") > job["spec"]["backoffLimit"]:
        message = "Job has reached the specified backoff limit"
        return condition("Failed", True, "BackoffLimitExceeded", message)
    succeeded, completions = _count(pods, "Succeeded"), job["spec"].get("completions")
    is_last = not any(map(is_active, pods))
    if succeeded and is_last if completions is None else succeeded >= completions:
        return condition("Complete", True, "CompletionsReached", "Reached expected number of pods")
    return None


def _wanted(job: Object, pods: list[Object]) -> int:
    """Return how many pods should run."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    succeeded, most = _count(pods, "Succeeded"), int(spec["parallelism"])
    completions = spec.get("completions")
    if completions is None:  # the first success says that there is no more work
        return sum(map(is_active, pods)) if succeeded else most
    return min(most, int(completions) - succeeded)


def _pod(job: Object, pods: list[Object]) -> Object:
    prefix = f"{job['metadata']['name']}-"
    if job["spec"]["completionMode"] != "Indexed":
        return pod_of(job, generateName=prefix)
    taken = {pod["metadata"]["labels"].get(INDEX) for pod in pods if phase(pod) != "Failed"}
    index = next(each for each in map(str, range(len(pods) + 1)) if each not in taken)
    pod = pod_of(job, generateName=f"{prefix}{index}-", labels={INDEX: index})
    pod["metadata"]["annotations"][INDEX] = index
    return pod


def _count(pods: list[Object], wanted: str) -> int:
    return sum(phase(pod) == wanted for pod in pods)


def _status(job: Object, pods: list[Object], end: Object | None) -> Object:
    before = job.get("status", {})
    active = list(filter(is_active, pods))
    status = {
        "startTime": before.get("startTime") or stamp(now()),
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "succeeded": _count(pods, "Succeeded"),
        "failed": _count(pods, "Failed"),
    }
    if end:
        status["conditions"] = with_times([end], before.get("conditions", ()))
        if end["type"] == "Complete":
            status["completionTime"] = before.get("completionTime") or stamp(now())
    return status
