"""Bodies of requests, within limits: of one, and of all that are being answered."""

from typing import NoReturn

from aiohttp import web

from moorage.errors import MoorageError

TOO_LARGE = "too_large"
"""The reason when a body exceeds its limit."""

LONGEST_PROBLEM = 500
"""Characters of a message: it may quote the request, and ends up in a log and in an event."""


class BadRequestError(MoorageError):
    """A request cannot be understood; the message has the path to the mistake, such as `$.Pod`.

    The message is cut where it would be long.

    `reason` is a label for metrics: one of a few words.
    """

    def __init__(self, problem: str, *, reason: str = "invalid") -> None:
        cut = len(problem) > LONGEST_PROBLEM
        super().__init__(f"{problem[:LONGEST_PROBLEM]}..." if cut else problem)
        self.reason = reason


class Bodies:
    """Reads bodies, which together may have *limit* bytes; one alone may always have its own limit.

    Attributes:
        held: Bytes of the bodies that were read or are being read, and not released.
    """

    def __init__(self, limit: int) -> None:
        self.held = 0
        self._limit = limit

    async def read(self, request: web.BaseRequest, limit: int) -> bytes:
        """Return a body of at most *limit* bytes; the caller takes them from `held` later.

        Raises:
            BadRequestError: It is too large, badly framed, or does not fit beside others.
        """
        content, chunks = request.content, list[bytes]()
        size, own, announced = 0, 0, request.content_length or 0
        try:
            while True:
                needed = max(size, announced)
                if needed > own:
                    others = self.held - own
                    if needed > limit or (others > 0 and others + needed > self._limit):
                        self._refuse(others, needed, limit)
                    self.held += needed - own
                    own = needed
                if content.at_eof():
                    break
                chunk, _ = await content.readchunk()  # readany would copy each byte once more
                chunks.append(chunk)
                size += len(chunk)
        except BaseException as error:
            self.held -= own
            if not isinstance(error, web.RequestPayloadError):
                raise
            problem = f"the body is badly framed: {error}"
            raise BadRequestError(problem, reason="framing") from error
        self.held -= own - size
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _refuse(self, others: int, size: int, limit: int) -> NoReturn:
        if size > limit:
            raise BadRequestError(f"the body has more than {limit} bytes", reason=TOO_LARGE)
        raise BadRequestError(
            f"other calls hold {others} of the {self._limit} bytes that all bodies may have: "
            "try again",
            reason="in_flight",
        )
