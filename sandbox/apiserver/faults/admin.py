"""The HTTP side of the faults, for tests that do not run in this process."""

from typing import TypeVar

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.faults.faults import ANY, Fault, Faults

T = TypeVar("T")


class WatchDrop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/watches/drop."""

    resource: str = ANY
    expire: bool = False
    """End them with 410 and forget the history, instead of cutting the connections."""


def add_routes(router: web.UrlDispatcher, faults: Faults) -> None:
    """Serve the paths that `faults` describes."""

    async def add(request: web.Request) -> web.Response:
        faults.add(_read(await request.read(), Fault))
        return _answer(faults.waiting())

    async def show(_: web.Request) -> web.Response:
        return _answer(faults.waiting())

    async def clear(_: web.Request) -> web.Response:
        faults.clear()
        return _answer(faults.waiting())

    async def drop(request: web.Request) -> web.Response:
        wanted = _read(await request.read() or b"{}", WatchDrop)
        end = faults.expire_watches if wanted.expire else faults.drop_watches
        return _answer({"ended": end(wanted.resource)})

    router.add_post("/sandbox/faults", add)
    router.add_get("/sandbox/faults", show)
    router.add_delete("/sandbox/faults", clear)
    router.add_post("/sandbox/watches/drop", drop)


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"{kind.__name__}: {error}") from error


def _answer(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
