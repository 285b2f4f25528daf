"""Who may call a port, and of which namespaces a caller may see pods.

Names in client certificates may, and at some ports bearer tokens. In plain text everybody may:
`moorage_host.tls.security` keeps such ports on loopback, unless the user allows more.

Handlers of an admin port ask of which namespaces. Operators with certificates, and in plain text
everybody, may see all. A bearer token needs the right to `get pods`, in the namespace or in all of
them.

    await require_read(request, namespace)  # answers 403 to those who may not
    shown = [each for each in found if await may_read(request, each.namespace)]

A stream asks about each event, so that a withdrawn right counts there too. It ends when `may_read`
raises, since it cannot answer 503 any more.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from aiohttp import hdrs, web

from moorage.errors import MoorageError
from moorage_host.http.connections import connection_of
from moorage_host.http.requests import HttpRefusal, Refusals
from moorage_host.slots import Slots

ALL_NAMESPACES = ""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class UncheckedError(MoorageError):
    """Nobody can say what a caller may see. The admin server answers 503."""


class ForbiddenError(MoorageError):
    """A caller may not see what they ask for. The admin server answers 403."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsReader:
    """What is known of a caller with a bearer token.

    Attributes:
        user: Whose token it is.
        may_get: Returns whether they may get pods of a namespace, or of all namespaces for "".
    """

    user: str
    may_get: Callable[[str], Awaitable[bool]]


_READER: web.RequestKey[PodsReader | None] = web.RequestKey("pods reader")


def admit(request: web.BaseRequest, reader: PodsReader | None) -> None:
    """Keep with a request whom its caller is; None may see all."""
    request[_READER] = reader


async def may_read(request: web.BaseRequest, namespace: str) -> bool:
    """Return whether the caller may see pods of a namespace, or of all namespaces for "".

    Raises:
        UncheckedError: The API server does not answer.
    """
    reader = _reader(request)
    if reader is None:
        return True
    try:
        if await reader.may_get(ALL_NAMESPACES):
            return True
        return bool(_NAMESPACE.fullmatch(namespace)) and await reader.may_get(namespace)
    except (MoorageError, TimeoutError) as error:
        raise UncheckedError(f"the bearer token cannot be checked: {error}") from error


async def require_read(request: web.BaseRequest, namespace: str) -> None:
    """Return if the caller may see pods of a namespace, or of all namespaces for "".

    Raises:
        ForbiddenError: They may not.
        UncheckedError: The API server does not answer.
    """
    if await may_read(request, namespace):
        return
    reader = _reader(request)
    where = f'in the namespace "{namespace[:100]}"' if namespace else "in all namespaces"
    raise ForbiddenError(
        f'"{reader.user if reader else ""}" may not get pods {where}; bind a role with this right'
    )


async def readable(request: web.BaseRequest, namespaces: Iterable[str]) -> frozenset[str]:
    """Return those namespaces of which the caller may see pods; raises UncheckedError."""
    return frozenset([each for each in set(namespaces) if await may_read(request, each)])


def refusal_of(error: ForbiddenError | UncheckedError) -> HttpRefusal:
    """Return the answer to a caller who may not see what they ask for."""
    status = 403 if isinstance(error, ForbiddenError) else 503
    return HttpRefusal(status=status, reason="identity", text=str(error))


def _reader(request: web.BaseRequest) -> PodsReader | None:
    if _READER not in request:
        raise UncheckedError("this port does not know who calls")
    return request[_READER]


_BEARER = "Bearer "

REFUSAL_SECONDS = 1.0
"""How long whoever shows an unknown token waits, as each call costs a connection."""

_VERBS = {hdrs.METH_HEAD: "get"}
"""The verbs of RBAC, where they are not the method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What is known about a bearer token: whose it is, "" if nobody's, and if that is enough."""

    user: str
    allowed: bool


class TokenReviewer(Protocol):
    """Knows bearer tokens."""

    async def review(self, token: str, path: str, verb: str, peer: str) -> Review:
        """Return whose a token is, and whether they may call a path; *verb* is "get" or "post".

        *peer* is the address that shows the token.

        Raises:
            MoorageError: It cannot be found out.
        """

    async def may_get_pods(self, token: str, namespace: str) -> bool:
        """Return whether a token allows to get pods of a namespace, or of all of them for "".

        Raises:
            MoorageError: It cannot be found out.
        """


class Callers:
    """Those whom certificates name: those *allowed* by the setting *option*."""

    def __init__(self, allowed: Collection[str], option: str, refusals: Refusals) -> None:
        self._allowed = frozenset(allowed)
        self._option = option
        self._refusals = refusals
        self._refused_tokens = Slots(1, 0)

    def refusal(self, request: web.BaseRequest) -> HttpRefusal | None:
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
    ) -> HttpRefusal | None:
        """Return why neither the certificate nor the bearer token of a caller is enough.

        If one is, `moorage_host.http.callers` knows what they may see.
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
    ) -> HttpRefusal | None:
        path, verb = request.path, _VERBS.get(request.method, request.method.lower())
        try:
            review = await reviewer.review(token, path, verb, request.remote or "")
        except (MoorageError, TimeoutError) as error:
            await self._refused_tokens.slow_down(REFUSAL_SECONDS)
            return self._refused(503, f"the bearer token cannot be checked: {error}")
        if not review.user:
            await self._refused_tokens.slow_down(REFUSAL_SECONDS)
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

    def _refused(self, status: int, text: str) -> HttpRefusal:
        self._refusals.note("identity", text)
        return HttpRefusal(status=status, reason="identity", text=text)
