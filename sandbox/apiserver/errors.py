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


def required(field: str, why: str = "") -> Cause:
    """A field is missing."""
    message = f"Required value: {why}" if why else "Required value"
    return Cause(field=field, reason="FieldValueRequired", message=message)


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


_REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""The reason that a code has where none is given."""


class StatusError(Exception):
    """A request that is answered with a Status of failure."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS.get(code, "") if reason is None else reason
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
    return StatusError(400, message)


def no_such_path() -> StatusError:
    """404: no resource is served at this path."""
    return StatusError(404, "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    """405: the path exists but not this verb."""
    return StatusError(405, "the server does not allow this method on the requested resource")


def expired(message: str) -> StatusError:
    """410: the resource version or continue token is no longer kept."""
    return StatusError(410, message)


def unsupported_media_type(given: str, accepted: Sequence[str]) -> StatusError:
    """415: the body is in a form that this path does not read."""
    listed = ", ".join(accepted)
    message = "the body of the request was in an unknown format - accepted media types include: "
    return StatusError(415, f"{message}{listed} (got {given or 'none'})")


def forbidden(resource: str, name: str, why: str) -> StatusError:
    """403: admission refuses the object."""
    message = f'{resource} "{name}" is forbidden: {why}'
    return StatusError(403, message, details=_details(resource, name, ""))


def not_found(resource: str, name: str, *, group: str = "") -> StatusError:
    """404: the object does not exist."""
    message = f'{_qualified(resource, group)} "{name}" not found'
    return StatusError(404, message, details=_details(resource, name, group))


def already_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """409: an object of this name is there."""
    message = f'{_qualified(resource, group)} "{name}" already exists'
    details = _details(resource, name, group)
    return StatusError(409, message, reason="AlreadyExists", details=details)


def conflict(resource: str, name: str, why: str, *, group: str = "") -> StatusError:
    """409: the object is not in the state that the request presumes."""
    what = _qualified(resource, group)
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return StatusError(409, message, details=_details(resource, name, group))


def invalid(kind: str, name: str, causes: Sequence[Cause], *, group: str = "") -> StatusError:
    """422: the object breaks rules; every broken one is named with its field path."""
    texts = [str(cause) for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(kind, name, group) | {
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    }
    message = f'{_qualified(kind, group)} "{name}" is invalid: {listed}'
    return StatusError(422, message, details=details)


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(kind: str, name: str, group: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "kind": kind}
    if group:
        details["group"] = group
    return details
