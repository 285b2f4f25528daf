"""The kinds that kubectl writes as protobuf, with the fields that its commands fill in.

Field numbers are those of the Kubernetes API's .proto files; others are skipped.
"""

from collections.abc import Mapping
from typing import Any, Final

Schema = Mapping[int, tuple[str, Any]]
"""Field number to name and type: str, int, bool, a schema, a list of one of these, or a marker."""

TEXTS: Final = {str: str}
"""A map of texts."""
DATA: Final = {str: bytes}
"""A map of bytes, which JSON has in base64."""
INT_OR_TEXT: Final = "IntOrString"

META: Schema = {
    1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 5: ("uid", str),
    6: ("resourceVersion", str), 11: ("labels", TEXTS), 12: ("annotations", TEXTS),
}  # fmt: skip
_PRECONDITIONS: Schema = {1: ("uid", str), 2: ("resourceVersion", str)}
_DELETE_OPTIONS: Schema = {
    1: ("gracePeriodSeconds", int), 2: ("preconditions", _PRECONDITIONS),
    4: ("propagationPolicy", str),
}  # fmt: skip
_REFERENCE: Schema = {1: ("kind", str), 2: ("namespace", str), 3: ("name", str), 4: ("uid", str)}
_SELECTOR: Schema = {1: ("matchLabels", TEXTS)}
_CONTAINER_PORT: Schema = {1: ("name", str), 3: ("containerPort", int), 4: ("protocol", str)}
_CONTAINER: Schema = {
    1: ("name", str), 2: ("image", str), 3: ("command", [str]), 4: ("args", [str]),
    6: ("ports", [_CONTAINER_PORT]),
}  # fmt: skip
_POD: Schema = {
    2: ("containers", [_CONTAINER]),
    3: ("restartPolicy", str),
    19: ("schedulerName", str),
}
_TEMPLATE: Schema = {1: ("metadata", META), 2: ("spec", _POD)}
_DEPLOYMENT: Schema = {
    1: ("replicas", int), 2: ("selector", _SELECTOR), 3: ("template", _TEMPLATE),
}  # fmt: skip
_JOB: Schema = {1: ("parallelism", int), 2: ("completions", int), 6: ("template", _TEMPLATE)}
_JOB_TEMPLATE: Schema = {1: ("metadata", META), 2: ("spec", _JOB)}
_CRON_JOB: Schema = {1: ("schedule", str), 5: ("jobTemplate", _JOB_TEMPLATE)}
_SERVICE_PORT: Schema = {
    1: ("name", str), 2: ("protocol", str), 3: ("port", int), 4: ("targetPort", INT_OR_TEXT),
}  # fmt: skip
_SERVICE: Schema = {
    1: ("ports", [_SERVICE_PORT]), 2: ("selector", TEXTS), 3: ("clusterIP", str), 4: ("type", str),
}  # fmt: skip
_BUDGET: Schema = {
    1: ("minAvailable", INT_OR_TEXT), 2: ("selector", _SELECTOR),
    3: ("maxUnavailable", INT_OR_TEXT),
}  # fmt: skip
_RULE: Schema = {
    1: ("verbs", [str]), 2: ("apiGroups", [str]), 3: ("resources", [str]),
    4: ("resourceNames", [str]), 5: ("nonResourceURLs", [str]),
}  # fmt: skip
_SUBJECT: Schema = {
    1: ("kind", str), 2: ("apiGroup", str), 3: ("name", str), 4: ("namespace", str)
}  # fmt: skip
_ROLE_REFERENCE: Schema = {1: ("apiGroup", str), 2: ("kind", str), 3: ("name", str)}
_ROLE: Schema = {1: ("metadata", META), 2: ("rules", [_RULE])}
_ROLE_BINDING: Schema = {
    1: ("metadata", META), 2: ("subjects", [_SUBJECT]), 3: ("roleRef", _ROLE_REFERENCE)
}  # fmt: skip
_SCALE_TARGET: Schema = {1: ("kind", str), 2: ("name", str), 3: ("apiVersion", str)}
_METRIC_TARGET: Schema = {1: ("type", str), 4: ("averageUtilization", int)}
_METRIC: Schema = {
    1: ("type", str), 4: ("resource", {1: ("name", str), 2: ("target", _METRIC_TARGET)})
}  # fmt: skip
_AUTOSCALER: Schema = {
    1: ("scaleTargetRef", _SCALE_TARGET), 2: ("minReplicas", int), 3: ("maxReplicas", int),
    4: ("metrics", [_METRIC]),
}  # fmt: skip


def _with_spec(spec: Schema) -> Schema:
    return {1: ("metadata", META), 2: ("spec", spec)}


KINDS: Mapping[str, Schema] = {
    "Namespace": {1: ("metadata", META)},
    "ServiceAccount": {1: ("metadata", META)},
    "SelfSubjectReview": {1: ("metadata", META)},
    "SelfSubjectAccessReview": {1: ("metadata", META)},
    "SelfSubjectRulesReview": {1: ("metadata", META)},
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "ConfigMap": {1: ("metadata", META), 2: ("data", TEXTS), 3: ("binaryData", DATA)},
    "Secret": {1: ("metadata", META), 2: ("data", DATA), 3: ("type", str)},
    "Service": _with_spec(_SERVICE),
    "Deployment": _with_spec(_DEPLOYMENT),
    "Job": _with_spec(_JOB),
    "CronJob": _with_spec(_CRON_JOB),
    "HorizontalPodAutoscaler": _with_spec(_AUTOSCALER),
    "PodDisruptionBudget": _with_spec(_BUDGET),
    "PriorityClass": {
        1: ("metadata", META), 2: ("value", int), 3: ("globalDefault", bool),
        4: ("description", str), 5: ("preemptionPolicy", str),
    },
    "Binding": {1: ("metadata", META), 2: ("target", _REFERENCE)},
    "Eviction": {1: ("metadata", META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "DeleteOptions": _DELETE_OPTIONS,
}  # fmt: skip
