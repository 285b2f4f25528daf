"""The hooks of pods, put together from their defaults, checks and admission."""

from moorage.models.decoding.codec import decode_pod
from sandbox.apiserver.kinds import pod_checks, pod_defaults, priorities
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.resources.resource import Object

_KEPT = ("priority", "preemptionPolicy")


def _keep_admitted(new: Object, old: Object) -> None:
    """Leave alone what admission decided, if an update leaves it out."""
    for key in _KEPT:
        if key in old["spec"]:
            new["spec"].setdefault(key, old["spec"][key])


HOOKS = Hooks(
    default=pod_defaults.default,
    on_create=pod_defaults.reset_status,
    on_update=_keep_admitted,
    admit=priorities.resolve_priority,
    validate=pod_checks.validate,
    validate_update=pod_checks.validate_update,
    readable=decode_pod,
    returned_when_deleted=True,
)
