"""How a gateway that ends on SIGTERM gives the Lease to the one that stands by."""

from typing import Protocol

from gateway.leadership.election import Election
from gateway.settings import EdgeSettings

QUIET_SECONDS = 1.0
"""When calls have stopped for so long, they go to the next gateway, and wait there."""


class Calls(Protocol):
    """The calls that are being answered."""

    async def until_they_stop(self, quiet: float, longest: float) -> None:
        """Wait until none has come for *quiet* seconds, but not for *longest*."""

    async def until_answered(self, longest: float) -> None:
        """Wait until all are answered, but not for *longest* seconds."""


class EdgeApp(Protocol):
    """What answers kube-scheduler.

    Attributes:
        draining: Whether each connection is to end after its next response.
    """

    draining: bool

    @property
    def calls(self) -> Calls:
        """The calls that are being answered."""


async def hand_over(election: Election | None, app: EdgeApp, settings: EdgeSettings) -> bool:
    """Release the Lease once calls go elsewhere; return False if this process has none.

    The next gateway gets ready as soon as it sees that this one is leaving. Until calls go there,
    this one stays ready and answers them.
    """
    if election is None or not await election.leave():
        return False
    app.draining = True
    await app.calls.until_they_stop(QUIET_SECONDS, settings.shutdown_delay)
    await app.calls.until_answered(settings.http_timeout)
    await election.release()
    return True
