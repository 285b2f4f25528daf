"""The rules for pods, put together from their defaults, checks and admission."""

from moorage.models.decoding.codec import decode_pod
from sandbox.apiserver import podchecks, poddefaults, priorities, shapes
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
_check_ours = shapes.checks(shapes.Pod)


def _check_types(text: bytes) -> None:
    _check_ours(text)
    decode_pod(text)  # as every client of ours will


RULES = Rules(
    default=poddefaults.default,
    on_create=poddefaults.reset_status,
    admit=priorities.resolve_priority,
    validate=podchecks.validate,
    validate_update=podchecks.validate_update,
    shape=_check_types,
    kept=("priority", "preemptionPolicy"),
    returned_when_deleted=True,
    status_apart=True,
)
