"""The hooks of every kind that has some, by the name of its collection."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.kinds import pods, reviews
from sandbox.apiserver.kinds.hooks import DNS_LABEL, PATH_SEGMENT, WriteHooks
from sandbox.apiserver.resources import custom
from sandbox.apiserver.resources.table import TO_GROUP, ApiResource, Object

_JOB_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_DEFAULTS: Mapping[str, Object] = {
    "Deployment": {"replicas": 1, "strategy": {"type": "RollingUpdate"}},
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {
        "replicas": 1, "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate"},
    },
    "Job": {
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False,
        "manualSelector": False,
    },
}  # fmt: skip


def _default_workload(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if obj["kind"] == "Job" and "parallelism" not in spec:
        spec.setdefault("completions", 1)
    for key, value in deepcopy(_DEFAULTS.get(obj["kind"], {})).items():
        spec.setdefault(key, value)


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


def _validate_workload(obj: Object) -> Iterator[Cause]:
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


def _validate_workload_update(new: Object, old: Object) -> Iterator[Cause]:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        yield invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable")


SELECTING = WriteHooks(
    default=_default_workload,
    on_create=_reset_status,
    validate=_validate_workload,
    validate_update=_validate_workload_update,
)
JOBS = WriteHooks(default=_default_workload, on_create=_reset_status)


def hooks_of(resource: ApiResource) -> WriteHooks:
    """Return the hooks of a resource."""
    if resource.api_version == "events.k8s.io/v1":
        return replace(_EVENTS, validate=_validate_new_event)
    return _BY_STORAGE.get(resource.stored_as, _NONE)


def _activate(namespace: Object) -> None:
    name = namespace["metadata"].get("name", "")
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _pending(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}


def _encode_secret(obj: Object) -> None:
    """Move stringData into data, as text in base64."""
    for key, text in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = b64encode(text.encode()).decode()
    obj.setdefault("type", "Opaque")


def _establish(definition: Object) -> None:
    definition["spec"].setdefault("conversion", {"strategy": "None"})
    definition["status"] = custom.established(definition)


def _allow(review: Object) -> None:
    review["status"] = {"allowed": True, "reason": "the sandbox allows everything"}


_CLUSTER_WIDE = ("default", "kube-system")
"""Where the events of objects without a namespace are kept."""


def _validate_event(event: Object, about: str = "involvedObject") -> Iterator[Cause]:
    namespace = event.get("involvedObject", {}).get("namespace", "")
    kept = event["metadata"].get("namespace", "")
    if kept != namespace if namespace else kept not in _CLUSTER_WIDE:
        yield invalid_value(f"{about}.namespace", namespace, "does not match event.namespace")


def _validate_new_event(event: Object) -> Iterator[Cause]:
    for key in ("eventTime", "reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(key):
            yield required(TO_GROUP.get(key, key))
    if event.get("type") not in ("Normal", "Warning"):
        yield invalid_value("type", event.get("type", ""), "")
    yield from _validate_event(event, "regarding")


def _write_empty_times(event: Object) -> None:
    """Write times that are not set as null, as Go does: `kubectl get events --sort-by` needs it."""
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)


MOST_EVENTS = 10_000
"""In a namespace. kube-apiserver drops events after an hour instead."""

_EVENTS = WriteHooks(default=_write_empty_times, validate=_validate_event, most=MOST_EVENTS)
_NONE = WriteHooks()
_BY_STORAGE: Mapping[str, WriteHooks] = {
    **{
        f"rbac.authorization.k8s.io/{kind}": WriteHooks(name_syntax=PATH_SEGMENT)
        for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    },
    "events": _EVENTS,
    "/pods": pods.PODS,
    "/nodes": pods.NODES,
    "/namespaces": WriteHooks(on_create=_activate, name_syntax=DNS_LABEL),
    "/secrets": WriteHooks(default=_encode_secret),
    "/persistentvolumes": WriteHooks(on_create=_pending),
    "/persistentvolumeclaims": WriteHooks(on_create=_pending),
    "apps/daemonsets": SELECTING,
    "apps/deployments": SELECTING,
    "apps/replicasets": SELECTING,
    "apps/statefulsets": SELECTING,
    "batch/jobs": JOBS,
    "authentication.k8s.io/tokenreviews": reviews.TOKEN_REVIEWS,
    "authorization.k8s.io/selfsubjectaccessreviews": WriteHooks(on_create=_allow),
    "authorization.k8s.io/subjectaccessreviews": reviews.ACCESS_REVIEWS,
    pods.CLASSES: pods.PRIORITY_CLASSES,
    custom.DEFINITIONS: WriteHooks(
        default=custom.default_names, on_create=_establish, validate=custom.check
    ),
}
