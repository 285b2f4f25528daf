"""What binds look like on the wire: requests checked and converted, outcomes and refusals named."""

import re

import grpc
import msgspec
import structlog

from moorage import Binding, DecisionSummary, __version__
from moorage.plugin.cycle_state import decode_values
from moorage.v1 import binder_pb2 as pb
from moorage_host.epochs import highest_epoch
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.errors import CallError
from services.binder.binding.fence import BarrierResult
from services.binder.binding.outcomes import BindError, BindPluginRun, BindReason, BindResult
from services.binder.binding.policies import PolicyText

CODES = {
    BindReason.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    BindReason.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    BindReason.OTHER_UID: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.TERMINATING: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.GATED: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.BOUND_ELSEWHERE: grpc.StatusCode.ALREADY_EXISTS,
    BindReason.REFUSED: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.PERMIT_TIMEOUT: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.GROUP: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.PLUGIN_FAILED: grpc.StatusCode.ABORTED,
    BindReason.POLICY: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.STALE_EPOCH: grpc.StatusCode.FAILED_PRECONDITION,
    BindReason.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    BindReason.OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    BindReason.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    BindReason.DEADLINE: grpc.StatusCode.DEADLINE_EXCEEDED,
}

RETRY_LIMIT = 1000
"""Pods in one request for another attempt."""

OUTCOMES = {BindResult.BOUND: pb.OUTCOME_BOUND, BindResult.ALREADY_BOUND: pb.OUTCOME_ALREADY_BOUND}

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_PART}(\.{_PART})*")
_UID = re.compile(r"[!-~]{1,253}")
_FORMS = {"namespace": _LABEL, "name": _SUBDOMAIN, "uid": _UID, "node": _SUBDOMAIN}
_decode_summary = msgspec.json.Decoder(DecisionSummary).decode
_log = structlog.get_logger()
_HOLDER = re.compile(r"[!-~]{1,253}")


def binding_from_proto(request: pb.BindRequest, known_epoch: int) -> Binding:
    """Return the decision of a request; epochs up to *known_epoch* need not be looked at again.

    Raises:
        CallError: It is malformed.
    """
    for field, form in _FORMS.items():
        if not form.fullmatch(getattr(request, field)):
            raise _malformed("cannot bind", field, getattr(request, field))
    if request.epoch > known_epoch and request.epoch > highest_epoch():
        raise _far_epoch("cannot bind", request.epoch)
    try:
        decision = _decode_summary(request.decision) if request.decision else None
    except msgspec.DecodeError as error:
        message = f"cannot bind: decision is malformed: {error}"
        raise CallError(grpc.StatusCode.INVALID_ARGUMENT, message) from error
    try:
        cycle_state = decode_values(request.cycle_state) if request.cycle_state else {}
    except msgspec.DecodeError as error:
        message = f"cannot bind: cycle_state is malformed: {error}"
        raise CallError(grpc.StatusCode.INVALID_ARGUMENT, message) from error
    return Binding(
        namespace=request.namespace,
        name=request.name,
        uid=request.uid,
        node=request.node,
        annotations=dict(request.annotations),
        profile=request.profile,
        decision=decision,
        cycle_state=cycle_state,
        generation=request.generation,
        holder=request.holder,
        traceparent=request.traceparent,
    )


def policy_from_proto(request: pb.BindRequest) -> PolicyText | None:
    """Return the policy of a request, if it has one."""
    if not request.policy.revision:
        return None
    return PolicyText(revision=request.policy.revision, content=request.policy.json)


def plugin_to_proto(run: BindPluginRun) -> pb.BindPluginReport:
    """Return what a plugin did for a bind."""
    report = pb.BindPluginReport(plugin=run.plugin, point=run.point, result=run.result)
    set_duration(report.duration, run.seconds)
    return report


def pods_from_proto(
    request: pb.BinderServiceRetryPodsRequest,
) -> list[tuple[str, str, str]]:
    """Return namespace, name and uid of the pods of a request.

    Raises:
        CallError: There are too many, or one has a name that none can have.
    """
    if len(request.pods) > RETRY_LIMIT:
        message = f"{len(request.pods)} pods: send at most {RETRY_LIMIT} in one call"
        raise CallError(grpc.StatusCode.INVALID_ARGUMENT, message)
    for pod in request.pods:
        for field in ("namespace", "name", "uid"):
            if not _FORMS[field].fullmatch(getattr(pod, field)):
                raise _malformed("cannot have pods tried again", field, getattr(pod, field))
    return [(pod.namespace, pod.name, pod.uid) for pod in request.pods]


def fence_from_proto(request: pb.BinderServiceBarrierRequest) -> tuple[int, str]:
    """Return the epoch and the holder of a barrier.

    Raises:
        CallError: One is missing or malformed.
    """
    attempt = "cannot fence"
    if not request.epoch:
        message = f"{attempt}: epoch is missing, which must be 1 or more"
        raise CallError(grpc.StatusCode.INVALID_ARGUMENT, message)
    if request.epoch > highest_epoch():
        raise _far_epoch(attempt, request.epoch)
    if not _HOLDER.fullmatch(request.holder):
        message = (
            f"{attempt}: holder is {request.holder[:253]!r}; it must have 1 to 253 printable ASCII "
            "characters without spaces"
        )
        raise CallError(grpc.StatusCode.INVALID_ARGUMENT, message)
    return request.epoch, request.holder


def barrier_to_proto(result: BarrierResult, replica: str) -> pb.BinderServiceBarrierResponse:
    """Return the answer to a barrier."""
    response = pb.BinderServiceBarrierResponse(
        epoch=result.epoch,
        holder=result.holder,
        replica=replica,
        moorage_version=__version__,
    )
    set_duration(response.memory, result.memory)
    for bind in result.binds:
        pod = pb.PodReference(namespace=bind.namespace, name=bind.name, uid=bind.uid)
        response.binds.add(
            pod=pod, node=bind.node, unknown=bind.unknown, annotations=bind.annotations
        )
    return response


def call_error(error: BindError) -> CallError:
    """Return the error of a bind that did not succeed, for the caller."""
    return CallError(CODES[error.reason], str(error), error.reason.name)


def _malformed(attempt: str, field: str, value: str) -> CallError:
    problem = f"is {value[:253]!r}, which is no Kubernetes {field}" if value else "is missing"
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, f"{attempt}: {field} {problem}")


def _far_epoch(attempt: str, epoch: int) -> CallError:
    """Return the refusal of an epoch after which no gateway could begin a term."""
    _log.warning("An epoch that no gateway should have is refused", epoch=epoch)
    message = (
        f"{attempt}: epoch is {epoch}, more than {highest_epoch()}, which is a year ahead of the "
        "binder's clock; compare the clocks of gateway and binder"
    )
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, message)
