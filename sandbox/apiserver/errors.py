"""Failures as Kubernetes words them: a Status object with a code, a reason and a message.

Everything below `http` raises `StatusError`; `http` alone turns it into a response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One field that validation refused: its path, Kubernetes' word for why, and the text."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str) -> Cause:
    """A field is missing."""
    return Cause(field=field, reason="FieldValueRequired", message="Required value")


def invalid_value(field: str, value: object, why: str) -> Cause:
    """A field has a value that it cannot have."""
    message = f'Invalid value: "{value}": {why}'
    return Cause(field=field, reason="FieldValueInvalid", message=message)


def unsupported_value(field: str, value: object, supported: Sequence[str]) -> Cause:
    """A field has none of its possible values."""
    listed = ", ".join(f'"{each}"' for each in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return Cause(field=field, reason="FieldValueNotSupported", message=message)


def forbidden_value(field: str, why: str) -> Cause:
    """A field may not have this value here."""
    return Cause(field=field, reason="FieldValueForbidden", message=f"Forbidden: {why}")


class StatusError(Exception):
    """A request that is answered with a Status of failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    def status(self) -> dict[str, Any]:
        """Return the Status object that clients read."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        # Even if it is empty: kubectl debug reads it without a look at whether it is there.
        return body | {"details": self.details, "code": self.code}


def success(details: Mapping[str, Any] | None = None, code: int | None = None) -> dict[str, Any]:
    """Return the Status object of a request that worked and has no object to show."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    body["status"] = "Success"
    if details:
        body["details"] = dict(details)
    if code:
        body["code"] = code
    return body


def bad_request(message: str) -> StatusError:
    """400: the request makes no sense in any state of the cluster."""
    return StatusError(400, "BadRequest", message)


def forbidden(resource: str, name: str, why: str, *, group: str = "") -> StatusError:
    """403: admission refuses the object."""
    message = f'{_qualified(resource, group)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details=_details(resource, name, group))


def no_such_path() -> StatusError:
    """404: no resource is served at this path."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message)


def not_implemented(why: str) -> StatusError:
    """501: a real cluster does this, the sandbox cannot; the message is one sentence."""
    return StatusError(501, "NotImplemented", why)


def not_found(resource: str, name: str, *, group: str = "") -> StatusError:
    """404: the object does not exist."""
    message = f'{_qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(resource, name, group))


def method_not_allowed() -> StatusError:
    """405: the path exists but not this verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def not_acceptable() -> StatusError:
    """406: nothing in the Accept header can be produced."""
    message = "only the following media types are accepted: application/json"
    return StatusError(406, "NotAcceptable", message)


def already_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """409: an object of this name is there."""
    message = f'{_qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name, group))


def conflict(resource: str, name: str, why: str, *, group: str = "") -> StatusError:
    """409: the object is not in the state that the request presumes."""
    what = _qualified(resource, group)
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name, group))


def expired(message: str) -> StatusError:
    """410: the resource version or continue token is no longer kept."""
    return StatusError(410, "Expired", message)


def too_large(limit_bytes: int) -> StatusError:
    """413: the body exceeds the limit."""
    message = f"Request entity too large: limit is {limit_bytes}"
    return StatusError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(given: str, accepted: Sequence[str]) -> StatusError:
    """415: the body is in a form that this path does not read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)} (got {given or 'none'})"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, causes: Sequence[Cause], *, group: str = "") -> StatusError:
    """422: the object breaks rules; every broken one is named with its field path."""
    texts = [str(cause) for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(kind, name, group) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{_qualified(kind, group)} "{name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, details=details)


def too_many_requests(retry_after_seconds: int) -> StatusError:
    """429: the client should come back after this time."""
    return StatusError(
        429,
        "TooManyRequests",
        "Too many requests, please try again later.",
        details={"retryAfterSeconds": retry_after_seconds},
        headers={"Retry-After": str(retry_after_seconds)},
    )


def internal(why: str) -> StatusError:
    """500: the fault is the server's."""
    return StatusError(500, "InternalError", f"Internal error occurred: {why}")


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(kind: str, name: str, group: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "kind": kind}
    if group:
        details["group"] = group
    return details
