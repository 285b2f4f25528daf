"""The resources that are served without a custom resource definition; a new one is a new row."""

from collections.abc import Iterator, Mapping
from typing import Any

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
