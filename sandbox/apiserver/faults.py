"""Faults on demand: what tests inject to see whether clients cope.

Used in Python (`api.faults.add(Fault(...))`) and over HTTP:

    POST   /sandbox/faults         one Fault as JSON; answered with all that are left
    GET    /sandbox/faults         the faults that are left
    DELETE /sandbox/faults         forget them
    POST   /sandbox/watches/drop   {"resource": "pods", "expire": false}: end running watches now
"""

from typing import Annotated, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta

from sandbox.apiserver.errors import StatusError, bad_request
from sandbox.apiserver.lies import Lie
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.watch import Watch

T = TypeVar("T")

ANY = "*"


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What happens to the next requests that match; with no effect set they are only counted."""

    verb: str = ANY
    """get, list, watch, create, update, patch, delete, deletecollection, or * for any."""
    resource: str = ANY
    """The plural, with the subresource if one is meant: pods, pods/binding; * for any."""
    name: str = ""
    """Only requests for the object of this name; for the legacy route bindings there is none."""
    times: Annotated[int, Meta(ge=1)] = 1
    """How many requests it applies to."""
    status: Annotated[int, Meta(ge=400, le=599)] | None = None
    """Answer with this HTTP code; a watch gets 410 as an ERROR event, as from the real server."""
    retry_after_seconds: Annotated[int, Meta(ge=0)] = 1
    """The Retry-After header of a 429 or 503."""
    delay_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Wait before the answer: before the request is carried out, or after it with `done`."""
    done: bool = False
    """Carry the request out first, then apply the other effects: it happened, but who knows."""
    drop: bool = False
    """Close the connection without an answer."""
    lie: Lie | None = None
    """Answer with 200 and what is not true; a watch does so until the faults are forgotten, and
    a drip has `delaySeconds` between two bytes."""

    def error(self) -> StatusError | None:
        """Return the failure to answer with."""
        if self.status is None:
            return None
        return _error(self.status, self.retry_after_seconds)


class Faults:
    """The faults that wait for a request, and the running watches."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._waiting: list[tuple[Fault, int]] = []
        self._watches: set[Watch] = set()

    def add(self, fault: Fault) -> None:
        """Apply a fault to the next requests that match it; older faults come first."""
        self._waiting.append((fault, fault.times))

    def clear(self) -> None:
        """Forget all faults; watches that lie go on in truth."""
        self._waiting.clear()
        for watch in self._watches:
            watch.lie = None

    def waiting(self) -> list[Fault]:
        """Return what is left, with the number of requests that each still applies to."""
        return [msgspec.structs.replace(fault, times=left) for fault, left in self._waiting]

    def drop_watches(self, resource: str = ANY) -> int:
        """Cut the connections of the running watches and return how many there were."""
        watches = self._matching(resource)
        for watch in watches:
            watch.end("dropped")
        return len(watches)

    def expire_watches(self, resource: str = ANY) -> int:
        """End the running watches with 410, forget the history, and return how many there were."""
        watches = self._matching(resource)
        for watch in watches:
            watch.end("expired")
        for storage, collection in self._cluster.store.collections().items():
            if resource in (ANY, storage.rpartition("/")[2]):
                self._cluster.store.compact(collection)
        return len(watches)

    def take(self, verb: str, resource: str, name: str) -> Fault | None:
        """Return the first fault that matches a request, counting it."""
        for index, (fault, left) in enumerate(self._waiting):
            if _matches(fault, verb, resource, name):
                self._waiting[index : index + 1] = [(fault, left - 1)] if left > 1 else []
                return fault
        return None

    def watches(self) -> int:
        """Return how many watches run."""
        return len(self._watches)

    def watching(self, watch: Watch) -> None:
        """Note a running watch."""
        self._watches.add(watch)

    def watched(self, watch: Watch) -> None:
        """Note that a watch has ended."""
        self._watches.discard(watch)

    def _matching(self, resource: str) -> list[Watch]:
        return [w for w in self._watches if resource in (ANY, w.selection.resource.plural)]


def _matches(fault: Fault, verb: str, resource: str, name: str) -> bool:
    return (
        fault.verb in (ANY, verb) and fault.resource in (ANY, resource) and fault.name in ("", name)
    )


_MESSAGES = {
    410: "too old resource version: injected fault",
    429: "Too many requests, please try again later.",
    500: "Internal error occurred: injected fault",
}


def _error(code: int, retry_after_seconds: int) -> StatusError:
    waits = code in (429, 503)
    return StatusError(
        code,
        _MESSAGES.get(code, "injected fault"),
        details={"retryAfterSeconds": retry_after_seconds} if code == 429 else None,
        headers={"Retry-After": str(retry_after_seconds)} if waits else None,
    )


class WatchDrop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/watches/drop."""

    resource: str = ANY
    expire: bool = False
    """End them with 410 and forget the history, instead of cutting the connections."""


def add_routes(router: web.UrlDispatcher, faults: Faults) -> None:
    """Serve the paths above, for tests that do not run in this process."""

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
