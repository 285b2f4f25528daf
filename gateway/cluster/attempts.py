"""What a pod's status shows about kube-scheduler's last attempt: ends the claim of that attempt."""

import msgspec


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    message: str | None = ""
    last_transition_time: str | None = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Header(msgspec.Struct):
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Header).decode


def failure_of(pod: bytes | msgspec.Raw) -> str:
    """Return the failed attempt that a pod's JSON shows; "" if none or not readable.

    The text differs between two attempts if anything in the pod's condition does.
    """
    try:
        status = _decode(pod).status
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    for condition in (status and status.conditions) or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.last_transition_time} {condition.reason} {condition.message}"
    return ""
