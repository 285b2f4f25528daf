"""What an attempt writes to the API server: a binding, events, or a condition.

Events go out in the background and may be lost.
"""

import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from moorage.models import Pod
from moorage_host.kube import KubeClient
from moorage_host.kube.events import EventWriter
from moorage_host.kube_scheduler.attempt import Reason
from moorage_host.kube_scheduler.cache import KnownPod
from moorage_host.kube_scheduler.extender import Extender, ExtenderError, bind_answer, bind_body
from sandbox.client import Api, ApiError

_log = structlog.get_logger()


class NotBoundError(Exception):
    """A pod was not bound, as far as the scheduler knows."""


async def bind(api: Api, extenders: Sequence[Extender], pod: Pod, node: str) -> None:
    """Bind a pod: through the extender that offers it, or as the default binder does.

    Args:
        api: The API server, for pods that no extender binds.
        extenders: In the order in which they are asked; an answer is final unless it is ignorable.
        pod: The pod.
        node: The node that was chosen for it.

    Raises:
        NotBoundError: The extender or the API server refused, or did not answer.
    """
    for extender in extenders:
        if not extender.config.bind_verb or not extender.is_interested(pod):
            continue
        try:
            return await _ask(extender, pod, node)
        except ExtenderError as error:
            if not extender.config.ignorable:
                raise NotBoundError(str(error)) from error
            _log.info("extender skipped", extender=extender.name, error=str(error))
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "target": {"kind": "Node", "name": node},
    }
    try:
        await api.request("POST", f"{path_of(pod)}/binding", binding)
    except ApiError as error:
        raise NotBoundError(f'running Bind plugin "DefaultBinder": {error}') from error


async def _ask(extender: Extender, pod: Pod, node: str) -> None:
    answer = await extender.call(extender.config.bind_verb, bind_body(pod, node))
    if refusal := bind_answer(answer):
        raise ExtenderError(refusal)


STRATEGIC = "application/strategic-merge-patch+json"


WAITING = 4096
"""Events that may wait to be written, and series that are continued; kube-scheduler's number."""


class Recorder:
    """Writes the outcomes of attempts to the API server, in the background."""

    def __init__(self, client: KubeClient) -> None:
        instance = f"kube-scheduler-{socket.gethostname()}"
        self._writer = EventWriter(client, instance, waiting=WAITING, count=self._counted)
        self._has_dropped = False
        self.run, self.flush = self._writer.run, self._writer.flush

    def _counted(self, result: Literal["written", "dropped", "failed"]) -> None:
        """Say once that Events are dropped; of one that fails its writer says so."""
        if result == "dropped" and not self._has_dropped:
            self._has_dropped = True
            _log.warning("Events are dropped: too many wait to be written", most=WAITING)

    def scheduled(self, pod: Pod, node: str) -> None:
        """Record that a pod was bound."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._record(pod, "Normal", "Scheduled", "Binding", note)

    def failed(self, pod: Pod, message: str) -> None:
        """Record that an attempt failed."""
        self._record(pod, "Warning", "FailedScheduling", "Scheduling", message)

    def preempted(self, victim: Pod, preemptor: Pod, node: str) -> None:
        """Record that a pod was evicted."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        name = preemptor.spec.scheduler_name
        self._record(victim, "Normal", "Preempted", "Preempting", note, reporter=name)

    def _record(
        self,
        pod: Pod,
        kind: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        note: str,
        reporter: str = "",
    ) -> None:
        about = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        self._writer.report(
            {"kind": "Pod", "apiVersion": "v1", **about},
            reason,
            note,
            kind=kind,
            action=action,
            controller=reporter or pod.spec.scheduler_name,
            series=(pod.uid, reason, note),
        )


def status_patch(
    pod: KnownPod,
    reason: Reason,
    message: str,
    nominated: str | None,
) -> dict[str, Any] | None:
    """Return what to change in the status after a failed attempt, None if nothing."""
    status = pod.document.get("status", {})
    patch: dict[str, Any] = {}
    if nominated is not None and nominated != status.get("nominatedNodeName", ""):
        patch["nominatedNodeName"] = nominated or None
    conditions = status.get("conditions") or []
    wanted = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": reason,
        "message": message,
    }
    before: dict[str, Any] = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    if any(before.get(key) != value for key, value in wanted.items()):
        patch["conditions"] = with_condition(conditions, wanted)
    return patch or None


def with_condition(
    conditions: list[dict[str, Any]], wanted: dict[str, Any]
) -> list[dict[str, Any]]:
    """Put a condition in place of the one of its type, keeping the time of the last transition."""
    before: dict[str, Any] = next((c for c in conditions if c["type"] == wanted["type"]), {})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    same = before.get("status") == wanted["status"]
    since = before.get("lastTransitionTime") if same else now
    others = [c for c in conditions if c["type"] != wanted["type"]]
    return [*others, {**wanted, "lastTransitionTime": since or now}]


def path_of(pod: Pod) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
