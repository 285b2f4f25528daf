"""Pods, nodes and priority classes: what the server fills in, and what is invalid.

The defaults are those that schedulers and kubectl look at, the checks those that users meet.
"""

import re
from collections.abc import Iterator
from typing import Any

from moorage.units.quantity import QuantityError, scaled, scaled_by
from sandbox.apiserver.errors import (
    Cause,
    forbidden,
    forbidden_value,
    invalid_value,
    required,
    unsupported_value,
)
from sandbox.apiserver.kinds.hooks import DNS_LABEL, WriteHooks
from sandbox.apiserver.resources.table import Object
from sandbox.apiserver.store.store import Store

_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EVICTING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
EVICTION_SECONDS = 300


def default(pod: Object) -> None:
    """Fill in the fields that the client left out."""
    pod.setdefault("status", {}).setdefault("phase", "Pending")
    spec = pod.setdefault("spec", {})
    for key, value in _SPEC.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    for container in [*spec.get("containers", ()), *spec.get("initContainers", ())]:
        _default_container(container)
    _tolerate_brief_outages(spec)


def reset_status(pod: Object) -> None:
    """Replace the status that the client sent by the one with which every pod starts."""
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    amounts = [each.get("resources", {}) for each in containers]
    if not any(_positive(each, kind) for each in amounts for kind in ("requests", "limits")):
        return "BestEffort"
    return "Guaranteed" if all(map(_is_guaranteed, amounts)) else "Burstable"


def _default_container(container: Object) -> None:
    for key, value in _CONTAINER.items():
        container.setdefault(key, value)
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    resources = container.setdefault("resources", {})
    for kind in ("limits", "requests"):
        if kind in resources:
            resources[kind] = {name: str(value) for name, value in resources[kind].items()}
    for name, limit in resources.get("limits", {}).items():
        resources.setdefault("requests", {}).setdefault(name, limit)
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "Always" if tag == "latest" or (not tag and "@" not in image) else "IfNotPresent"


def _tolerate_brief_outages(spec: Object) -> None:
    tolerations: list[Object] = spec.setdefault("tolerations", [])
    for taint in _EVICTING_TAINTS:
        if not any(_tolerates(each, taint) for each in tolerations):
            tolerations.append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": EVICTION_SECONDS,
                }
            )


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )


def _positive(resources: Object, kind: str) -> dict[str, int]:
    return dict(_scaled(resources.get(kind, {})))


def _scaled(amounts: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name in ("cpu", "memory"):
        try:
            value = scaled(name, amounts.get(name, 0))
        except QuantityError:
            continue  # validation names the field
        if value > 0:
            yield name, value


def _is_guaranteed(resources: Object) -> bool:
    limits = _positive(resources, "limits")
    return len(limits) == 2 and _positive(resources, "requests") == limits


RUN_SECONDS = "sandbox.moorage.io/run-seconds"
"""The annotation of a pod that succeeds so many seconds after its start, if there is a kubelet."""

_MAY_CHANGE = {
    "activeDeadlineSeconds",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
}
_GATED_MAY_CHANGE = {"nodeSelector", "affinity"}


def validate(pod: Object) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    spec = pod["spec"]
    if not spec.get("containers"):
        yield required("spec.containers")
    names: set[str] = set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind, ())):
            yield from _container(f"spec.{kind}[{index}]", container, names)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        why = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_value("spec.nodeName", why)
    yield from _run_seconds(pod["metadata"].get("annotations", {}))


def _run_seconds(annotations: Object) -> Iterator[Cause]:
    text = annotations.get(RUN_SECONDS, "1")
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        why = "must be a number of seconds such as 30 or 0.5, below 1,000,000"
        yield invalid_value(f"metadata.annotations[{RUN_SECONDS}]", text, why)


def validate_update(new: Object, old: Object) -> Iterator[Cause]:
    """Yield what an update may not change: nearly everything in the spec."""
    allowed = _MAY_CHANGE | (_GATED_MAY_CHANGE if old["spec"].get("schedulingGates") else set())
    if _fixed(new["spec"], allowed) != _fixed(old["spec"], allowed):
        why = (
            "pod updates may not change fields other than "
            "`spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
            "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
            "was previously negative)"
        )
        yield forbidden_value("spec", why)
    gates = {gate.get("name") for gate in old["spec"].get("schedulingGates", ())}
    if not {gate.get("name") for gate in new["spec"].get("schedulingGates", ())} <= gates:
        why = "only deletion is allowed, but found new scheduling gates"
        yield forbidden_value("spec.schedulingGates", why)


def _fixed(spec: Object, allowed: set[str]) -> Object:
    containers = [
        {key: value for key, value in each.items() if key not in ("image", "imagePullPolicy")}
        for each in [*spec.get("containers", ()), *spec.get("initContainers", ())]
    ]
    return {k: v for k, v in spec.items() if k not in allowed} | {"containers": containers}


def _container(path: str, container: Object, names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif problem := DNS_LABEL.problem(name):
        yield invalid_value(f"{path}.name", name, problem)
    elif name in names:
        message = f'Duplicate value: "{name}"'
        yield Cause(field=f"{path}.name", reason="FieldValueDuplicate", message=message)
    names.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _resources(f"{path}.resources", container.get("resources", {}))


def _resources(path: str, resources: Object) -> Iterator[Cause]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    causes = [
        cause
        for kind, amounts in (("limits", limits), ("requests", requests))
        for name, value in amounts.items()
        for cause in _quantity_cause(f"{path}.{kind}[{name}]", name, value)
    ]
    yield from causes
    for name, value in () if causes else requests.items():
        is_exact = _is_extended(name) or name.startswith("hugepages-")
        over = scaled_by(True, value) - scaled_by(True, limits.get(name, value))
        if is_exact and name not in limits:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif over > 0 or (is_exact and over):
            most = "equal to" if is_exact else "less than or equal to"
            problem = f"must be {most} {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", value, problem)


def _quantity_cause(path: str, name: str, value: object) -> Iterator[Cause]:
    """Yield what is wrong with a quantity of a resource, if anything."""
    try:
        thousandths = scaled_by(True, value) if isinstance(value, str | int | float) else -1
        if thousandths >= 0 and not (_is_extended(name) and thousandths % 1000):
            return
        problem = "must be an integer" if thousandths > 0 else "must be greater than or equal to 0"
    except QuantityError as error:
        problem = str(error)
    yield invalid_value(path, value, problem)


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


CLASSES = "scheduling.k8s.io/priorityclasses"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
LOWER_PRIORITY = "PreemptLowerPriority"


def resolve_priority(store: Store, pod: Object) -> None:
    """Set the pod's priority, class name and preemption policy from its PriorityClass.

    Raises:
        StatusError: 403, the class does not exist or the pod brought another priority.
    """
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    found = _class_of(store, spec.get("priorityClassName", ""))
    if found is None:
        wanted = spec["priorityClassName"]
        raise forbidden("pods", name, f"no PriorityClass with name {wanted} was found")
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    value, policy = found.get("value", 0), found.get("preemptionPolicy", LOWER_PRIORITY)
    if spec.get("priority", value) != value:
        raise forbidden("pods", name, _MISMATCH.format("integer value of priority", spec, value))
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


_MISMATCH = (
    "the {0} ({1[priority]}) must not be provided in pod spec; "
    "priority admission controller computed {2} from the given PriorityClass name"
)


def _class_of(store: Store, name: str) -> Object | None:
    if name:
        return store.find(CLASSES, "", name)
    defaults = [each for each in store.objects(CLASSES) if each.get("globalDefault")]
    # With several defaults Kubernetes takes the lowest.
    return min(defaults, key=lambda each: int(each.get("value", 0)), default={})


def _keep_admitted(new: Object, old: Object) -> None:
    """Leave alone what admission decided, if an update leaves it out."""
    for key in ("priority", "preemptionPolicy"):
        if key in old["spec"]:
            new["spec"].setdefault(key, old["spec"][key])


PODS = WriteHooks(
    default=default,
    on_create=reset_status,
    on_update=_keep_admitted,
    admit=resolve_priority,
    validate=validate,
    validate_update=validate_update,
)


def _default_node(node: Object) -> None:
    """Fill in. There is no not-ready taint: no controller would lift it here."""
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    for kind in ("capacity", "allocatable"):
        if kind in status:
            status[kind] = {name: str(value) for name, value in status[kind].items()}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _validate_node(node: Object) -> Iterator[Cause]:
    for index, taint in enumerate(node["spec"].get("taints", ())):
        path = f"metadata.taints[{index}]"  # so says kube-apiserver
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in EFFECTS:
            yield unsupported_value(f"{path}.effect", taint.get("effect", ""), EFFECTS)
    for kind in ("capacity", "allocatable"):
        for name, value in node["status"].get(kind, {}).items():
            yield from _quantity_cause(f"status.{kind}[{name}]", name, value)


NODES = WriteHooks(default=_default_node, validate=_validate_node, keeps_status=True)


def _default_class(priority_class: Object) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", LOWER_PRIORITY)


PRIORITY_CLASSES = WriteHooks(default=_default_class)
