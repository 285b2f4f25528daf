"""What can go wrong between a command and a gateway."""

from moorage.errors import MoorageError


class GatewayError(MoorageError):
    """The gateway did not answer with success; the message has what to do.

    Args:
        message: What is wrong.
        status: The HTTP status code; 0 if no answer came.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
