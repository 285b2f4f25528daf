"""StatefulSets, PersistentVolumes and their claims: kept and shown, but no controller acts on them.

A volume is bound to a claim by whoever writes `spec.claimRef` and, through the status subresource,
the phase.
"""

from datetime import datetime

from sandbox.apiserver import shapes
from sandbox.apiserver.rules import Rules
from sandbox.apiserver.store import Object


def _default_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate"})
    for template in spec.get("volumeClaimTemplates", ()):
        template.setdefault("apiVersion", "v1")
        template.setdefault("kind", "PersistentVolumeClaim")
        template.setdefault("status", {"phase": "Pending"})


def _reset_set(obj: Object) -> None:
    obj["status"] = {"replicas": 0}


def _pending(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}


def _default_volume(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_persistent_volume(obj: Object) -> None:
    _default_volume(obj)
    obj["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")


def ready_replicas(obj: Object, _: datetime) -> str:
    """Show how many of a StatefulSet's pods are ready."""
    wanted = obj.get("spec", {}).get("replicas", 0)
    return f"{obj.get('status', {}).get('readyReplicas', 0)}/{wanted}"


def claim(obj: Object, _: datetime) -> str:
    """Show which claim has a volume."""
    reference = obj.get("spec", {}).get("claimRef") or {}
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


STATEFUL_SETS = Rules(
    default=_default_set,
    on_create=_reset_set,
    shape=shapes.checks(shapes.StatefulSet),
    status_apart=True,
)
VOLUMES = Rules(
    default=_default_persistent_volume,
    on_create=_pending,
    shape=shapes.checks(shapes.PersistentVolume),
    status_apart=True,
)
CLAIMS = Rules(
    default=_default_volume,
    on_create=_pending,
    shape=shapes.checks(shapes.PersistentVolumeClaim),
    status_apart=True,
)
