"""What is served: the table of resources, and what a URL path means.

A path means a resource, and perhaps a namespace, a name and a subresource.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sandbox.apiserver import errors

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object, decoded from JSON. Stored objects are never changed in place."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

SUBRESOURCE_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "status": ("get", "update", "patch"),
    "scale": ("get", "update", "patch"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A pair of functions between the stored form of an object and that of another API version."""

    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResource:
    """One kind of object under one API version."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    selectable: Mapping[str, str] = field(default_factory=dict)
    """Fields that a field selector may name, in addition to name and namespace: path to default."""
    view: View | None = None
    """How objects look in this API version, if they are stored in another one."""
    storage: str = ""
    """The collection that holds the objects, if it is shared with another resource."""

    @property
    def api_version(self) -> str:
        """The value of the objects' apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def stored_as(self) -> str:
        """The name of the collection that holds the objects, by default GROUP/PLURAL."""
        return self.storage or f"{self.group}/{self.plural}"

    @property
    def has_status(self) -> bool:
        """Whether the status is written through a subresource only."""
        return "status" in self.subresources

    @property
    def is_stored(self) -> bool:
        """Whether objects are kept; a Binding is only an order."""
        return "get" in self.verbs


def value_at(obj: Any, path: str) -> Any:
    """Return the value at a path of names with dots between them, None if there is none."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


# Scope: N is namespaced, C is for the whole cluster. A dash stands for nothing.
_TABLE = """
v1 nodes Node C no status
v1 pods Pod N po status,binding,eviction
v1 bindings Binding N - -
v1 namespaces Namespace C ns status
v1 events Event N ev -
v1 configmaps ConfigMap N cm -
v1 secrets Secret N - -
v1 services Service N svc status
v1 endpoints Endpoints N ep -
v1 serviceaccounts ServiceAccount N sa -
v1 persistentvolumes PersistentVolume C pv status
v1 persistentvolumeclaims PersistentVolumeClaim N pvc status
v1 replicationcontrollers ReplicationController N rc status,scale
v1 podtemplates PodTemplate N - -
v1 resourcequotas ResourceQuota N quota status
v1 limitranges LimitRange N limits -
apps/v1 deployments Deployment N deploy status,scale
apps/v1 replicasets ReplicaSet N rs status,scale
apps/v1 statefulsets StatefulSet N sts status,scale
apps/v1 daemonsets DaemonSet N ds status
apps/v1 controllerrevisions ControllerRevision N - -
batch/v1 jobs Job N - status
batch/v1 cronjobs CronJob N cj status
policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb status
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler N hpa status
authentication.k8s.io/v1 tokenreviews TokenReview C - -
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview C - -
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview C - -
certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest C csr status
coordination.k8s.io/v1 leases Lease N - -
discovery.k8s.io/v1 endpointslices EndpointSlice N - -
events.k8s.io/v1 events Event N ev -
networking.k8s.io/v1 ingresses Ingress N ing status
networking.k8s.io/v1 ingressclasses IngressClass C - -
networking.k8s.io/v1 networkpolicies NetworkPolicy N netpol -
node.k8s.io/v1 runtimeclasses RuntimeClass C - -
rbac.authorization.k8s.io/v1 roles Role N - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole C - -
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C - -
resource.k8s.io/v1 deviceclasses DeviceClass C - -
resource.k8s.io/v1 resourceclaims ResourceClaim N - status
resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate N - -
resource.k8s.io/v1 resourceslices ResourceSlice C - -
scheduling.k8s.io/v1 priorityclasses PriorityClass C pc -
scheduling.k8s.io/v1beta1 workloads Workload N - status
scheduling.k8s.io/v1beta1 podgroups PodGroup N - status
storage.k8s.io/v1 storageclasses StorageClass C sc -
storage.k8s.io/v1 volumeattachments VolumeAttachment C - status
storage.k8s.io/v1 csidrivers CSIDriver C - -
storage.k8s.io/v1 csinodes CSINode C - -
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity N - -
storage.k8s.io/v1 volumeattributesclasses VolumeAttributesClass C vac -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition C crd,crds status
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration C - -
apiregistration.k8s.io/v1 apiservices APIService C - status
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration C - -
admissionregistration.k8s.io/v1 validatingadmissionpolicies ValidatingAdmissionPolicy C - status
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings \
ValidatingAdmissionPolicyBinding C - -
"""
_IN_ALL = {
    "pods", "services", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs",
    "cronjobs", "replicationcontrollers", "horizontalpodautoscalers",
}  # fmt: skip
"""What `kubectl get all` shows."""

TO_GROUP = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The fields of events of v1 that events.k8s.io/v1 calls otherwise.

Events are stored as v1: kubectl reads that, schedulers write events.k8s.io/v1.
"""


def _renamed(event: Object, names: Mapping[str, str], version: str) -> Object:
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": version}


_EVENT_VIEW = View(
    show=lambda event: _renamed(event, TO_GROUP, "events.k8s.io/v1"),
    store=lambda event: _renamed(event, {new: old for old, new in TO_GROUP.items()}, "v1"),
)

_ABOUT = ("kind", "name", "namespace", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OF_EVENTS = ("reportingComponent", "source", "reason", "type")
_SELECTABLE: Mapping[str, Mapping[str, str]] = {
    "/nodes": {"spec.unschedulable": "false"},
    "/pods": {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    "/events": dict.fromkeys((*(f"involvedObject.{key}" for key in _ABOUT), *_OF_EVENTS), ""),
    "events.k8s.io/events": dict.fromkeys(
        (*(f"regarding.{key}" for key in _ABOUT), "reportingController", "reason", "type"), ""
    ),
}
_SPECIAL: Mapping[str, dict[str, Any]] = {
    "/bindings": {"verbs": ("create",)},
    "/namespaces": {"verbs": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")},
    "/events": {"storage": "events"},
    "events.k8s.io/events": {"storage": "events", "view": _EVENT_VIEW},
}


def _read(table: str) -> Iterator[ApiResource]:
    for line in table.strip().splitlines():
        api_version, plural, kind, scope, short_names, subresources = line.split()
        group, _, version = api_version.rpartition("/")
        key = f"{group}/{plural}"
        yield ApiResource(
            group=group,
            version=version,
            plural=plural,
            kind=kind,
            singular=kind.lower(),
            namespaced=scope == "N",
            short_names=_words(short_names),
            categories=("all",) if plural in _IN_ALL else (),
            subresources=_words(subresources),
            selectable=_SELECTABLE.get(key, {}),
            **({"verbs": ("create",)} if kind.endswith("Review") else _SPECIAL.get(key, {})),
        )


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


BUILT_IN = tuple(_read(_TABLE))


class ResourceTable:
    """Finds the resource that a path or a stored object belongs to."""

    def __init__(self) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in BUILT_IN}

    @property
    def rows(self) -> tuple[ApiResource, ...]:
        """All resources, in the order in which they are listed."""
        return tuple(self._rows.values())

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        """Return the resource at this place, if one is served there."""
        return self._rows.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> ApiResource | None:
        """Return the resource whose objects say that they are of this kind."""
        named = (row for row in self._rows.values() if row.kind == kind)
        return next((row for row in named if row.api_version == api_version), None)

    def stored_in(self, storage: str) -> ApiResource:
        """Return the resource in whose form a collection keeps its objects.

        Raises:
            KeyError: Nothing is served from this collection.
        """
        rows = [row for row in self._rows.values() if row.stored_as == storage]
        if not rows:
            raise KeyError(storage)
        return next((row for row in rows if row.view is None), rows[0])

    def versions(self) -> Mapping[str, list[str]]:
        """Return the served API versions of each group, the preferred one first."""
        served: dict[str, list[str]] = {}
        for row in self._rows.values():
            versions = served.setdefault(row.group, [])
            if row.version not in versions:
                versions.append(row.version)
        return served

    def replace(self, group: str, plural: str, rows: Iterable[ApiResource]) -> None:
        """Serve these rows, and no others, as the resource *plural* of *group*."""
        kept = {key: row for key, row in self._rows.items() if key[::2] != (group, plural)}
        self._rows = kept | {(row.group, row.version, row.plural): row for row in rows}


_BUILT_IN = ResourceTable()
_NO_CONTAINERS = "the sandbox runs no containers"
_NOT_IMPLEMENTED = {
    "pods/log": f"{_NO_CONTAINERS}: there are no logs",
    "pods/exec": f"{_NO_CONTAINERS}: there is nothing to run a command in",
    "pods/attach": f"{_NO_CONTAINERS}: there is nothing to attach to",
    "pods/portforward": f"{_NO_CONTAINERS}: there are no ports to forward to",
    "pods/proxy": f"{_NO_CONTAINERS}: there is nothing to connect to",
    "pods/resize": f"{_NO_CONTAINERS} to resize: delete the pod and create it again",
    "services/proxy": f"{_NO_CONTAINERS}: there is nothing to connect to",
    "nodes/proxy": "the sandbox has no kubelets: there is nothing to connect to",
    "serviceaccounts/token": "the sandbox has no authentication: no client needs a token",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    resource: ApiResource
    namespace: str | None = None
    """None: all namespaces, or the resource has none."""
    name: str = ""
    subresource: str = ""

    def not_found(self) -> errors.StatusError:
        """Return the 404 for this object."""
        return errors.not_found(self.resource.plural, self.name, group=self.resource.group)

    @property
    def space(self) -> str:
        """The namespace as the store keys it."""
        return self.namespace or ""


def parse(path: str, resources: ResourceTable = _BUILT_IN) -> Target:
    """Read a path below /api or /apis.

    Raises:
        StatusError: 404, nothing is served there.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        return _target(resources, "", "v1", parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _target(resources, parts[1], parts[2], parts[3:])
    raise errors.no_such_path()


def _target(resources: ResourceTable, group: str, version: str, rest: list[str]) -> Target:
    namespace: str | None = None
    if rest[:1] == ["namespaces"] and len(rest) > 2 and resources.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        raise errors.no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    resource = resources.find(group, version, plural)
    if resource is None or resource.namespaced < (namespace is not None):
        raise errors.no_such_path()
    if name and resource.namespaced and namespace is None:
        raise errors.no_such_path()
    if why := _NOT_IMPLEMENTED.get(f"{plural}/{subresource}") if not group else None:
        raise errors.StatusError(501, why)
    if subresource and subresource not in resource.subresources:
        raise errors.no_such_path()
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)
