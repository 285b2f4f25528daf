"""Which namespaces a caller may see pods of: for the handlers of an admin port.

Whoever may call in plain text, and operators with certificates, may see all. A bearer token needs
the right to `get pods`, in the namespace or in all of them.

    await require_read(request, namespace)  # answers 403 to those who may not
    shown = [each for each in found if await may_read(request, each.namespace)]

A stream asks about each event, so that a withdrawn right counts there too. It ends when `may_read`
raises, since it cannot answer 503 any more.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from moorage.errors import MoorageError
from moorage_host.http.requests import Refusal

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
    """Return those namespaces of which the caller may see pods.

    Raises:
        UncheckedError: The API server does not answer.
    """
    return frozenset([each for each in set(namespaces) if await may_read(request, each)])


def refusal_of(error: ForbiddenError | UncheckedError) -> Refusal:
    """Return the answer to a caller who may not see what they ask for."""
    status = 403 if isinstance(error, ForbiddenError) else 503
    return Refusal(status=status, reason="identity", text=str(error))


def _reader(request: web.BaseRequest) -> PodsReader | None:
    if _READER not in request:
        raise UncheckedError("this port does not know who calls")
    return request[_READER]
