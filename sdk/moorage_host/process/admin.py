"""The small HTTP server beside the work of every process: probes and metrics.

`/livez` answers as long as the event loop does. `/readyz` runs every check and lists what is not
ready and why. `/metrics` is Prometheus' text format. The gateway adds routes of its own.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
import structlog
from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from moorage.errors import ConfigurationError

log = structlog.get_logger()

Check = Callable[[], str | None]
"""Returns why something is not ready, in one sentence, or None if it is. Must be quick."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def admin_server(
    host: str,
    port: int,
    *,
    checks: Mapping[str, Check],
    notes: Mapping[str, Check] | None = None,
    routes: Iterable[web.AbstractRouteDef] = (),
    registry: CollectorRegistry = REGISTRY,
) -> AsyncIterator[str]:
    """Serve until the block is left; give the address as "host:port", with the port that was bound.

    The answer of `/readyz` shows what *notes* return, and is ready all the same.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    app = web.Application(middlewares=[_errors_as_json])
    app.router.add_get("/livez", _live)
    app.router.add_get("/readyz", _ready_handler(checks, notes or {}))
    app.router.add_get("/metrics", _metrics_handler(registry))
    app.router.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        yield await _listen(runner, host, port)
    finally:
        await runner.cleanup()


def problems(checks: Mapping[str, Check]) -> dict[str, str]:
    """Return what is not ready, by the name of the check, and why."""
    answers = {name: _ask(name, check) for name, check in checks.items()}
    return {name: reason for name, reason in answers.items() if reason}


def address(host: str, port: int) -> str:
    """Return "host:port", with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def cause_of(error: OSError) -> str:
    """Return the system's own words; asyncio and socket put an address of their own around them."""
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()


async def _listen(runner: web.AppRunner, host: str, port: int) -> str:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {address(host, port)} for the admin server: {cause_of(error)}; "
            "choose another --admin-port or --admin-host"
        ) from error
    return address(host, runner.addresses[0][1])


def _ask(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:
        log.exception("A readiness check failed", check=name)
        return "the check itself failed; the log has the cause"


async def _live(_: web.Request) -> web.Response:
    return _json({"status": "ok"})


def _ready_handler(checks: Mapping[str, Check], notes: Mapping[str, Check]) -> Handler:
    async def ready(request: web.Request) -> web.Response:
        found = problems(checks)
        listed = checks if "verbose" in request.query else found
        answer: dict[str, object] = {"status": "not ready" if found else "ok"}
        if listed:
            answer["checks"] = [_shown(name, found.get(name)) for name in listed]
        if noted := problems(notes):
            answer["notes"] = [{"name": name, "note": text} for name, text in noted.items()]
        return _json(answer, status=503 if found else 200)

    return ready


class _Collected(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _metrics_handler(registry: CollectorRegistry) -> Handler:
    async def metrics(request: web.Request) -> web.Response:
        names = request.query.getall("name[]", ())
        wanted = registry.restricted_registry(names) if names else registry
        # Collectors read what belongs to the event loop, so only the text is left to a thread.
        collected = _Collected(list(wanted.collect()))
        encode, content_type = choose_encoder(",".join(request.headers.getall("Accept", ())))
        text = await asyncio.to_thread(encode, collected)
        response = web.Response(body=text, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return metrics


def _shown(name: str, reason: str | None) -> dict[str, str]:
    return {"name": name, "status": "not ready", "reason": reason} if reason else _ok(name)


def _ok(name: str) -> dict[str, str]:
    return {"name": name, "status": "ok"}


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as error:
        allowed = sorted(error.allowed_methods)
        text = f"{error.method} is not allowed here, only {', '.join(allowed)}"
        return _json({"error": text}, status=405, headers={"Allow": ", ".join(allowed)})
    except web.HTTPNotFound as error:
        if request.match_info.http_exception is not error:
            raise  # a route's own answer, such as a decision that does not exist
        return _json({"error": f"no such path: {request.path}", "paths": _paths(request.app)}, 404)


def _paths(app: web.Application) -> list[str]:
    return sorted({resource.canonical for resource in app.router.resources()})


def _json(
    answer: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    body = msgspec.json.encode(answer) + b"\n"
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
