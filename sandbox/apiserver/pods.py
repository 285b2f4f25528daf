"""The rules for pods, put together from their defaults, checks and admission."""

from moorage.models.codec import decode_pod
from sandbox.apiserver import podchecks, poddefaults, priorities
from sandbox.apiserver.rules import Rules

FIELDS = {
    "spec.nodeName": "",
    "spec.restartPolicy": "",
    "spec.schedulerName": "",
    "spec.serviceAccountName": "",
    "spec.hostNetwork": "false",
    "status.phase": "",
    "status.podIP": "",
    "status.nominatedNodeName": "",
}
RULES = Rules(
    default=poddefaults.default,
    on_create=poddefaults.reset_status,
    admit=priorities.resolve_priority,
    validate=podchecks.validate,
    validate_update=podchecks.validate_update,
    shape=decode_pod,
    returned_when_deleted=True,
    status_apart=True,
)
