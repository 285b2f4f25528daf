"""What the API server answers, what can go wrong on the way, and its notation of time."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from moorage.errors import MoorageError

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for text that is no JSON of the form that is expected."""


class KubeError(MoorageError):
    """A request to the API server did not do what it was sent for."""


class KubeAnswerError(KubeError):
    """The API server, or something before it, answered with success, but it cannot be true."""


class KubeUnreachableError(KubeError):
    """No answer came: the connection failed or broke, or no credentials could be read.

    Whether the API server carried out the request is not known.
    """


class KubeStatusError(KubeError):
    """The API server answered, but not with success.

    Args:
        what: What was asked for: the method and the path.
        status: The HTTP status code.
        reason: The machine-readable reason of the Status object, such as "Expired"; may be empty.
        message: The message of the Status object.
        retry_after: How long the API server asks to wait, in seconds.
    """

    def __init__(
        self,
        what: str,
        *,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{what}: API server answered {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Status object with the time after which to retry."""

    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """How the API server describes a failure."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class Response(msgspec.Struct, frozen=True):
    """An answer: its HTTP status code, its headers (names ignore case) and its raw body."""

    what: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the request did what it was sent for."""
        return 200 <= self.status < 300

    @property
    def retry_after(self) -> float | None:
        """How long the API server asks to wait, in seconds."""
        text = self.headers.get("Retry-After", "")
        # The other form, a date, is never sent by Kubernetes.
        return float(text) if text.isdecimal() else None

    def check(self) -> "Response":
        """Return the response itself.

        Raises:
            KubeStatusError: The answer is not a success.
        """
        if 200 <= self.status < 300:
            return self
        status = read_status(self.body)
        raise KubeStatusError(
            self.what,
            status=self.status,
            reason=status.reason,
            message=status.message,
            retry_after=self.retry_after,
        )


def read_status(body: bytes | msgspec.Raw) -> Status:
    """Read a Status object; other text, such as a proxy's page, becomes the start of a message."""
    try:
        return msgspec.json.decode(body, type=Status)
    except UNREADABLE:
        return Status(message=bytes(body)[:200].decode(errors="replace"))


def micro_time(time: datetime) -> str:
    """Write a time as a MicroTime, always with six digits: the API server refuses fewer."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
