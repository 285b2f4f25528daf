"""An answer of the API server, and the content of its error form."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from moorage_host.kube.errors import KubeStatusError


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a Status object with the time after which to retry."""

    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """How the API server describes a failure."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
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
        if self.ok:
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
    except msgspec.DecodeError:
        return Status(message=bytes(body)[:200].decode(errors="replace"))
