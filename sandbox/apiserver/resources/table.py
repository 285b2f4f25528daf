"""The table of resources, and what a URL path means: resource, namespace, name and subresource."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.apiserver import errors
from sandbox.apiserver.kinds import events
from sandbox.apiserver.resources.resource import ALL_VERBS, Resource

# Scope: N is namespaced, C is for the whole cluster. A dash stands for nothing.
_TABLE = """
v1 nodes Node C no status
v1 pods Pod N po status,binding,eviction,ephemeralcontainers
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
authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview C - -
authentication.k8s.io/v1 tokenreviews TokenReview C - -
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview C - -
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview C - -
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
    "/namespaces": {"status.phase": ""},
    "/events": events.CORE_FIELDS,
    "events.k8s.io/events": events.GROUP_FIELDS,
    "/secrets": {"type": ""},
    "batch/jobs": {"status.successful": ""},
}
_SPECIAL: Mapping[str, dict[str, Any]] = {
    "/bindings": {"verbs": ("create",)},
    "authentication.k8s.io/selfsubjectreviews": {"verbs": ("create",)},
    "authentication.k8s.io/tokenreviews": {"verbs": ("create",)},
    "authorization.k8s.io/selfsubjectaccessreviews": {"verbs": ("create",)},
    "authorization.k8s.io/selfsubjectrulesreviews": {"verbs": ("create",)},
    "authorization.k8s.io/subjectaccessreviews": {"verbs": ("create",)},
    "/namespaces": {"verbs": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")},
    "/events": {"storage": "events"},
    "events.k8s.io/events": {"storage": "events", "view": events.GROUP_VIEW},
}


def _read(table: str) -> Iterator[Resource]:
    for line in table.strip().splitlines():
        api_version, plural, kind, scope, short_names, subresources = line.split()
        group, _, version = api_version.rpartition("/")
        key = f"{group}/{plural}"
        yield Resource(
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
            **_SPECIAL.get(key, {}),
        )


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


BUILT_IN = tuple(_read(_TABLE))


class ResourceTable:
    """Finds the resource that a path or a stored object belongs to."""

    def __init__(self, rows: Iterable[Resource] = BUILT_IN) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in rows}

    @property
    def rows(self) -> tuple[Resource, ...]:
        """All resources, in the order in which they are listed."""
        return tuple(self._rows.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource at this place, if one is served there."""
        return self._rows.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource whose objects say that they are of this kind."""
        named = (row for row in self._rows.values() if row.kind == kind)
        return next((row for row in named if row.api_version == api_version), None)

    def stored_in(self, storage: str) -> Resource:
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

    def replace(self, group: str, plural: str, rows: Iterable[Resource]) -> None:
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

    resource: Resource
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
