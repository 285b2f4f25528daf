"""How many bytes of bodies the calls hold that are being answered."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.edge.json.errors import BadRequestError

IN_FLIGHT = "in_flight"
"""The reason when a body does not fit beside those of other calls."""


class BytesInFlight:
    """Counts the bodies of all calls, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    @contextmanager
    def body(self) -> Iterator["BodyBytes"]:
        """Count one body until the call is answered."""
        body = BodyBytes(self)
        try:
            yield body
        finally:
            self._bytes -= body.size

    def add(self, size: int, own: int) -> None:
        """Count further bytes of a body that has *own* already; a body always fits alone.

        Raises:
            BadRequestError: They do not fit beside other bodies.
        """
        if self._bytes > own and self._bytes + size > self._limit:
            raise BadRequestError(
                f"other calls hold {self._bytes - own} of the {self._limit} bytes that all bodies "
                "may have, see --body-bytes-in-flight; try again",
                reason=IN_FLIGHT,
            )
        self._bytes += size


class BodyBytes:
    """The bytes of one body that are counted."""

    def __init__(self, all_bodies: BytesInFlight) -> None:
        self.size = 0
        self._all = all_bodies

    def grow_to(self, size: int) -> None:
        """Count the body as so large from here on, if it was not.

        Raises:
            BadRequestError: It does not fit beside other bodies.
        """
        if size > self.size:
            self._all.add(size - self.size, self.size)
            self.size = size
