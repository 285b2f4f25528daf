"""Who may call a port: names in client certificates, and at some ports bearer tokens.

In plain text everybody may: `moorage_host.tls.security` keeps such ports on loopback, unless the
user allows more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from aiohttp import hdrs, web

from moorage.errors import MoorageError
from moorage_host.http.connections import connection_of
from moorage_host.http.reading import PodsReader, admit
from moorage_host.http.refusals import Refusals
from moorage_host.http.requests import Refusal

_BEARER = "Bearer "

_VERBS = {hdrs.METH_HEAD: "get"}
"""The verbs of RBAC, where they are not the method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What is known about a bearer token: whose it is, "" if nobody's, and if that is enough."""

    user: str
    allowed: bool


class TokenReviewer(Protocol):
    """Knows bearer tokens."""

    async def review(self, token: str, path: str, verb: str) -> Review:
        """Return whose a token is, and whether they may call a path; *verb* is "get" or "post".

        Raises:
            MoorageError: It cannot be found out.
        """

    async def may_get_pods(self, token: str, namespace: str) -> bool:
        """Return whether a token allows to get pods of a namespace, or of all of them for "".

        Raises:
            MoorageError: It cannot be found out.
        """


class Callers:
    """Those whom certificates name.

    Args:
        allowed: The names.
        option: The setting that has them.
        refusals: Counts others.
    """

    def __init__(self, allowed: Collection[str], option: str, refusals: Refusals) -> None:
        self._allowed = frozenset(allowed)
        self._option = option
        self._refusals = refusals

    def refusal(self, request: web.BaseRequest) -> Refusal | None:
        """Return why a caller is refused, and count it; None if they are not."""
        connection = connection_of(request)
        if connection is not None and connection.identities is None:
            return None
        names = connection.identities or () if connection is not None else ()
        if not self._allowed.isdisjoint(names):
            return None
        shown = ", ".join(sorted(names))[:200] or "nobody"
        return self._refused(
            403,
            f"your certificate names {shown}; this is for {', '.join(sorted(self._allowed))} "
            f"({self._option})",
        )

    async def refusal_of_token(
        self, request: web.BaseRequest, reviewer: TokenReviewer | None
    ) -> Refusal | None:
        """Return why neither the certificate nor the bearer token of a caller is enough.

        If one is, `moorage_host.http.reading` knows what they may see.
        """
        connection = connection_of(request)
        if connection is not None and (
            connection.identities is None or not self._allowed.isdisjoint(connection.identities)
        ):
            admit(request, None)
            return None
        header = request.headers.get(hdrs.AUTHORIZATION, "")
        if reviewer is None or not header.startswith(_BEARER):
            if connection is not None and connection.identities:
                return self.refusal(request)
            ways = f"a client certificate that names {', '.join(sorted(self._allowed))}"
            tokens = " or a bearer token" if reviewer is not None else ""
            return self._refused(401, f"this path needs {ways}{tokens}")
        return await self._review(reviewer, header.removeprefix(_BEARER).strip(), request)

    async def _review(
        self, reviewer: TokenReviewer, token: str, request: web.BaseRequest
    ) -> Refusal | None:
        path, verb = request.path, _VERBS.get(request.method, request.method.lower())
        try:
            review = await reviewer.review(token, path, verb)
        except (MoorageError, TimeoutError) as error:
            return self._refused(503, f"the bearer token cannot be checked: {error}")
        if not review.user:
            return self._refused(401, "the API server does not know this bearer token")
        if not review.allowed:
            return self._refused(
                403,
                f'"{review.user}" may not {verb} the non-resource URL {path[:200]}; bind a '
                "ClusterRole with this right, such as moorage-metrics or moorage-decisions",
            )
        may_get = partial(reviewer.may_get_pods, token)
        admit(request, PodsReader(user=review.user, may_get=may_get))
        return None

    def _refused(self, status: int, text: str) -> Refusal:
        self._refusals.note("identity", text)
        return Refusal(status=status, reason="identity", text=text)
