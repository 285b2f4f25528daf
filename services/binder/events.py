"""Which ends of binds are reported to users as Kubernetes Events, and in which words."""

from typing import Literal

from moorage import Binding
from moorage_host.kube.events import EventWriter
from services.binder.binding.outcomes import BindError, BindReason, BindResult

WITHOUT_EVENT = {BindReason.NOT_FOUND, BindReason.OTHER_UID, BindReason.STALE_EPOCH}
"""Failures after which there is no pod to report on, or that are none of the pod's."""


class BindEvents:
    """Reports the ends of binds.

    Attributes:
        unwanted: The end of binds that needs no Event: most binds end so.
    """

    def __init__(self, writer: EventWriter, mode: Literal["failures", "all", "none"]) -> None:
        """Have *writer* write what is wanted."""
        self.unwanted = None if mode == "all" else BindResult.BOUND
        self._writer = writer
        self._mode = mode

    def record(self, binding: Binding, result: BindResult | BindError, warning: str = "") -> None:
        """Queue an Event about the end of a bind, or a *warning*, if one is wanted. Never waits."""
        mode, target = self._mode, f"{binding.namespace}/{binding.name} to {binding.node}"
        kind: Literal["Normal", "Warning"] = "Warning"
        cause = ""
        if isinstance(result, BindError):
            if mode == "none" or result.reason in WITHOUT_EVENT:
                return
            reason, cause = "FailedBinding", result.reason.value
            note = f"Binding {target} failed: {result}"
        elif warning and mode != "none":
            reason, note = "PlacedWithoutScores", f"Assigned {target}: {warning}"
        else:
            if mode != "all" or result is not BindResult.BOUND:
                return
            why = f": {binding.decision.reason}" if binding.decision else ""
            kind, reason = "Normal", "Scheduled"
            note = f"Successfully assigned {target}{why}"
        pod = {"apiVersion": "v1", "kind": "Pod", "uid": binding.uid}
        self._writer.report(
            {**pod, "namespace": binding.namespace, "name": binding.name},
            reason,
            note,
            kind=kind,
            action="Binding",
            controller=binding.profile or "moorage-binder",
            series=(binding.uid, binding.node, reason, cause),
        )
