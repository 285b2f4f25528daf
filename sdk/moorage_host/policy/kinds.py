"""Says what a file is that is none of the expected kind, and which command takes it."""

from typing import Any

OURS = "this is a policy of Moorage"

_GROUP = "moorage.io"


def what_it_is(value: Any) -> str:
    """Return what a document is, and what to do with it; "" if it says no kind."""
    if not isinstance(value, dict) or not isinstance(kind := value.get("kind"), str) or not kind:
        return ""
    version = value.get("apiVersion")
    group = version.partition("/")[0] if isinstance(version, str) else ""
    if kind == "MoorageConfiguration" or group == _GROUP:
        return f"{OURS}: moorage config validate FILE reads it"
    if kind == "KubeSchedulerConfiguration":
        return (
            "this is the configuration of kube-scheduler: moorage doctor --config FILE and "
            "moorage simulate --scheduler-config FILE read it"
        )
    if kind == "Policy" and group in ("v1", "kubescheduler.config.k8s.io"):
        return (
            "this is a Policy of kube-scheduler before 1.23: moorage convert-policy FILE "
            "translates it"
        )
    if kind == "ConfigMap":
        return "this is a ConfigMap: write what stands in its data into a file"
    return f"this is of kind {kind}"
