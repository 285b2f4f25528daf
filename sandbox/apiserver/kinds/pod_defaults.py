"""What the server fills in on a pod: the defaults that schedulers and kubectl look at."""

from collections.abc import Iterator
from typing import Any

from moorage.units.quantity import QuantityError, scaled
from sandbox.apiserver.resources.resource import Object

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
