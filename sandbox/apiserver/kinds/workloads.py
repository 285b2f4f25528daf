"""Kinds whose objects make pods: the defaults and checks that their controllers rely on."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.resources.resource import Object

_JOB_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_DEFAULTS: Mapping[str, Object] = {
    "Deployment": {
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}
        },
    },
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {
        "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
    "Job": {
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False,
        "manualSelector": False, "podReplacementPolicy": "TerminatingOrFailed",
    },
}  # fmt: skip


def _default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if obj["kind"] == "Job" and "parallelism" not in spec:
        spec.setdefault("completions", 1)
    for key, value in deepcopy(_DEFAULTS.get(obj["kind"], {})).items():
        spec.setdefault(key, value)
    for claim in spec.get("volumeClaimTemplates", ()):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("status", {"phase": "Pending"})


def _reset_status(obj: Object) -> None:
    obj["status"] = {"replicas": 0} if "replicas" in obj["spec"] else {}
    if obj["kind"] == "Job" and not obj["spec"]["manualSelector"]:
        _select_by_uid(obj)


def _select_by_uid(job: Object) -> None:
    """Let the Job select its pods by its UID, as labels of its template."""
    uid, name = job["metadata"]["uid"], job["metadata"].get("name", "")
    labels = {_JOB_UID: uid, "controller-uid": uid, _JOB_NAME: name, "job-name": name}
    template = job["spec"].setdefault("template", {})
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    job["spec"]["selector"] = {"matchLabels": {_JOB_UID: uid}}


def _validate(obj: Object) -> Iterator[Cause]:
    """Check that the selector matches the template's labels: else pods are made without end."""
    spec: Mapping[str, Any] = obj["spec"]
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if not spec.get("selector"):
        yield required("spec.selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not wanted.items() <= labels.items():
        why = "`selector` does not match template `labels`"
        yield invalid_value("spec.template.metadata.labels", labels, why)
    if spec.get("replicas", 0) < 0:
        why = "must be greater than or equal to 0"
        yield invalid_value("spec.replicas", spec["replicas"], why)


def _validate_update(new: Object, old: Object) -> Iterator[Cause]:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        yield invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable")


SELECTING = Hooks(
    default=_default,
    on_create=_reset_status,
    validate=_validate,
    validate_update=_validate_update,
)
JOBS = Hooks(default=_default, on_create=_reset_status)
