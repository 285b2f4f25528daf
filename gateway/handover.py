"""How a gateway that ends on SIGTERM gives the Lease to the one that stands by."""

from gateway.edge.app import App
from gateway.edge.settings import EdgeSettings
from gateway.leadership.election import Election

QUIET_SECONDS = 1.0
"""When calls have stopped for so long, they go to the next gateway, and wait there."""


async def hand_over(election: Election | None, app: App, settings: EdgeSettings) -> bool:
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
