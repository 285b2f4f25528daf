"""What can go wrong between a process and the API server."""

from moorage.errors import MoorageError


class KubeError(MoorageError):
    """A request to the API server did not do what it was sent for."""


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
