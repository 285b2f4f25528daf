"""The hooks of every kind that has some, by the name of its collection."""

from base64 import b64encode
from collections.abc import Mapping

from sandbox.apiserver.kinds import events, nodes, pods, priorities, shapes
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.kinds.names import DNS_LABEL
from sandbox.apiserver.resources import custom
from sandbox.apiserver.resources.resource import Object, Resource


def hooks_of(resource: Resource) -> Hooks:
    """Return the hooks of a resource."""
    by_version = _BY_VERSION.get((resource.api_version, resource.plural))
    return by_version or _BY_STORAGE.get(resource.stored_as, _NONE)


def _activate(namespace: Object) -> None:
    name = namespace["metadata"].get("name", "")
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _default_replicas(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("replicas", 1)


def _default_stateful_set(obj: Object) -> None:
    _default_replicas(obj)
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate"})
    for template in spec.get("volumeClaimTemplates", ()):
        template.setdefault("apiVersion", "v1")
        template.setdefault("kind", "PersistentVolumeClaim")
        template.setdefault("status", {"phase": "Pending"})


def _default_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("suspend", False)


def _select_own_pods(job: Object) -> None:
    own = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
    job["spec"].setdefault("selector", {"matchLabels": own})


def _reset_replicas(obj: Object) -> None:
    obj["status"] = {"replicas": 0}


def _pending(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}


def _default_claim(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_volume(obj: Object) -> None:
    _default_claim(obj)
    obj["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")


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


_NONE = Hooks()
_REPLICATED = Hooks(default=_default_replicas, on_create=_reset_replicas, shape=shapes.WORKLOAD)
_BY_VERSION: Mapping[tuple[str, str], Hooks] = {
    ("v1", "events"): events.CORE_HOOKS,
    ("events.k8s.io/v1", "events"): events.GROUP_HOOKS,
}
_BY_STORAGE: Mapping[str, Hooks] = {
    "/pods": pods.HOOKS,
    "/nodes": nodes.HOOKS,
    "/namespaces": Hooks(on_create=_activate, name_syntax=DNS_LABEL, shape=shapes.PLAIN),
    "/secrets": Hooks(default=_encode_secret, shape=shapes.SECRET),
    "/persistentvolumes": Hooks(default=_default_volume, on_create=_pending, shape=shapes.VOLUME),
    "/persistentvolumeclaims": Hooks(
        default=_default_claim, on_create=_pending, shape=shapes.VOLUME
    ),
    "apps/deployments": _REPLICATED,
    "apps/replicasets": _REPLICATED,
    "apps/statefulsets": Hooks(
        default=_default_stateful_set, on_create=_reset_replicas, shape=shapes.WORKLOAD
    ),
    "batch/jobs": Hooks(default=_default_job, on_create=_select_own_pods, shape=shapes.JOB),
    "authorization.k8s.io/selfsubjectaccessreviews": Hooks(on_create=_allow),
    "coordination.k8s.io/leases": Hooks(shape=shapes.LEASE),
    priorities.CLASSES: priorities.HOOKS,
    custom.DEFINITIONS: Hooks(
        default=custom.default_names,
        on_create=_establish,
        validate=custom.check,
        shape=shapes.DEFINITION,
    ),
}
