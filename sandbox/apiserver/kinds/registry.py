"""The hooks of every kind that has some, by the name of its collection."""

from base64 import b64encode
from collections.abc import Mapping

from sandbox.apiserver.kinds import events, pods, reviews, workloads
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.kinds.names import DNS_LABEL, PATH_SEGMENT
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


def _default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _establish(definition: Object) -> None:
    definition["spec"].setdefault("conversion", {"strategy": "None"})
    definition["status"] = custom.established(definition)


def _allow(review: Object) -> None:
    review["status"] = {"allowed": True, "reason": "the sandbox allows everything"}


def _allow_all(review: Object) -> None:
    every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    review["status"] = {"resourceRules": [every], "nonResourceRules": [], "incomplete": False}


def _name_user(review: Object) -> None:
    review["status"] = {"userInfo": {"username": "sandbox", "groups": ["system:masters"]}}


_NONE = Hooks()
_BY_VERSION: Mapping[tuple[str, str], Hooks] = {
    ("v1", "events"): events.CORE_HOOKS,
    ("events.k8s.io/v1", "events"): events.GROUP_HOOKS,
}
_BY_STORAGE: Mapping[str, Hooks] = {
    **{
        f"rbac.authorization.k8s.io/{kind}": Hooks(name_syntax=PATH_SEGMENT)
        for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    },
    "/pods": pods.PODS,
    "/nodes": pods.NODES,
    "/namespaces": Hooks(on_create=_activate, name_syntax=DNS_LABEL),
    "/secrets": Hooks(default=_encode_secret),
    "/services": Hooks(default=_default_service),
    "/persistentvolumes": Hooks(default=_default_volume, on_create=_pending),
    "/persistentvolumeclaims": Hooks(default=_default_claim, on_create=_pending),
    "apps/daemonsets": workloads.SELECTING,
    "apps/deployments": workloads.SELECTING,
    "apps/replicasets": workloads.SELECTING,
    "apps/statefulsets": workloads.SELECTING,
    "batch/jobs": workloads.JOBS,
    "authentication.k8s.io/selfsubjectreviews": Hooks(on_create=_name_user),
    "authentication.k8s.io/tokenreviews": reviews.TOKEN_REVIEWS,
    "authorization.k8s.io/selfsubjectaccessreviews": Hooks(on_create=_allow),
    "authorization.k8s.io/selfsubjectrulesreviews": Hooks(on_create=_allow_all),
    "authorization.k8s.io/subjectaccessreviews": reviews.ACCESS_REVIEWS,
    pods.CLASSES: pods.PRIORITY_CLASSES,
    custom.DEFINITIONS: Hooks(
        default=custom.default_names, on_create=_establish, validate=custom.check
    ),
}
