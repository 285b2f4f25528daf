"""The one table from exceptions to gRPC's status codes.

Servicers raise; the interceptor asks this table. Sessions, whose answers carry a status of their
own (`CycleStatus`), ask it as well, so that an error means the same in a call and in a stream.
"""

from collections.abc import Iterator

import grpc.aio
import msgspec
import structlog
from google.protobuf.message import DecodeError

from moorage.errors import (
    ConfigurationError,
    NoStateError,
    PluginFailedError,
    TooManyNodesError,
    UnknownNameError,
)
from moorage.units.quantity import QuantityError

log = structlog.get_logger()

LONGEST_MESSAGE = 1024
"""Characters of a status message; what is longer would not fit into HTTP/2 headers everywhere."""

UNEXPECTED = "internal error; the log of the service has the cause"
TIMED_OUT = "time ran out before the work was done"
MALFORMED = "the message is malformed"
TOO_DEEP = "the message is nested too deeply"


class CallError(Exception):
    """A call cannot be answered, for a reason that its documentation names.

    Args:
        code: The status code that the caller gets.
        message: What was attempted, on which object, what to do.
        reason: Optional. The cause in UPPER_SNAKE_CASE, for programs; sent as the trailing metadata
            `moorage-reason`.
    """

    def __init__(self, code: grpc.StatusCode, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason


_TABLE: tuple[tuple[type[Exception], grpc.StatusCode, str | None], ...] = (
    # Within a call, the configuration is what the caller sent: a policy, a plugin's arguments.
    (ConfigurationError, grpc.StatusCode.INVALID_ARGUMENT, None),
    (PluginFailedError, grpc.StatusCode.INTERNAL, None),
    (UnknownNameError, grpc.StatusCode.NOT_FOUND, None),
    (NoStateError, grpc.StatusCode.FAILED_PRECONDITION, None),
    (TooManyNodesError, grpc.StatusCode.INVALID_ARGUMENT, None),
    (QuantityError, grpc.StatusCode.INVALID_ARGUMENT, None),
    (msgspec.DecodeError, grpc.StatusCode.INVALID_ARGUMENT, None),
    (DecodeError, grpc.StatusCode.INVALID_ARGUMENT, MALFORMED),
    (UnicodeDecodeError, grpc.StatusCode.INVALID_ARGUMENT, MALFORMED),
    (RecursionError, grpc.StatusCode.INVALID_ARGUMENT, TOO_DEEP),
    (TimeoutError, grpc.StatusCode.DEADLINE_EXCEEDED, TIMED_OUT),
    (Exception, grpc.StatusCode.INTERNAL, UNEXPECTED),
)
"""The first type that fits, its status, and the text if the error's own is not fit to be seen."""


OTHER_NAME = "its certificate does not name the service that was called"

_OTHER_NAME_IN_GRPC = (
    "Custom verification check failed with error: UNAUTHENTICATED: "
    "Hostname Verification Check failed."
)


def ending_of(error: grpc.aio.AioRpcError) -> str:
    """Return code and details with which a call ended, in words that say what to do."""
    return f"{error.code().name}: {error.details()}".replace(_OTHER_NAME_IN_GRPC, OTHER_NAME)


def status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    """Return the caller's error for an exception; of a group, for the first one.

    Texts of unexpected errors stay in the log: they are of no use to callers, and they vary.
    """
    cause = _first_cause(error)
    if isinstance(cause, CallError):
        return cause.code, shortened(cause.message)
    code, text = next((code, text) for kind, code, text in _TABLE if isinstance(cause, kind))
    return code, shortened(str(cause) if text is None else text)


def report(error: Exception) -> tuple[grpc.StatusCode, str]:
    """Return the caller's error for an exception; log it if it is a bug."""
    code, message = status_of(error)
    if message == UNEXPECTED:
        log.error("A call failed unexpectedly", exc_info=error)
    else:
        log.debug("A call was refused", code=code.name, error=message)
    return code, message


def reason_of(error: Exception) -> str:
    """Return the machine-readable reason of an error, or an empty string."""
    cause = _first_cause(error)
    return cause.reason if isinstance(cause, CallError) else ""


def shortened(message: str) -> str:
    """Cut a status message that is too long to be sent."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."


def _first_cause(error: Exception) -> Exception:
    """Look into groups, as TaskGroup raises them. A bug among them outweighs a refusal."""
    if not isinstance(error, ExceptionGroup):
        return error
    causes = list(_leaves(error))
    return next((cause for cause in causes if not _is_expected(cause)), causes[0])


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _is_expected(error: Exception) -> bool:
    return isinstance(error, (CallError, *(kind for kind, _, _ in _TABLE[:-1])))
