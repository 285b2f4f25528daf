"""The small HTTP server beside the work of every process: probes and metrics.

`/livez` answers as long as the event loop does. `/readyz` runs every check and lists what is not
ready and why, and what is degraded: it works on, but something has failed. `/metrics` is
Prometheus' text format. The gateway adds routes of its own.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from moorage.errors import ConfigurationError
from moorage_host.http.callers import (
    Callers,
    ForbiddenError,
    TokenReviewer,
    UncheckedError,
    refusal_of,
)
from moorage_host.http.connections import HEAD_LIMITS, Connections, State, connection_of
from moorage_host.http.requests import Refusals, RequestChecks
from moorage_host.process.lifecycle import AdminSettings
from moorage_host.tls.security import LOOPBACK, Security, server_context

log = structlog.get_logger()

Check = Callable[[], str | None]
"""Returns why something is not ready, in one sentence, or None if it is. Must be quick."""

_OPEN = frozenset({"/livez", "/readyz"})
_METRICS = "/metrics"

CONNECTIONS = 128
"""Connections to the admin port; with more, one that waits for its caller is closed."""

_KEEP_ALIVE = 100.0  # seconds; Prometheus comes again before that

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def admin_server(
    settings: AdminSettings,
    *,
    checks: Mapping[str, Check],
    notes: Mapping[str, Check] | None = None,
    routes: Iterable[web.AbstractRouteDef] = (),
    security: Security = LOOPBACK,
    reviewer: TokenReviewer | None = None,
    registry: CollectorRegistry = REGISTRY,
) -> AsyncIterator[str]:
    """Serve until the block is left; give the address as "host:port", with the port that was bound.

    Where *notes* return something, `/readyz` shows it and says "degraded", with status 200: traffic
    still has to come here. With TLS, all
    paths but the two for probes need the certificate of an operator, or a bearer token of which
    the *reviewer* approves; /metrics is for Prometheus' certificate too. Handlers that show pods
    ask `moorage_host.http.callers` which.

    Raises:
        ConfigurationError: The address cannot be listened on, or not in plain text.
    """
    refusals = Refusals("admin")
    certificates = security.certificates
    context = server_context(certificates, "optional") if certificates is not None else None
    head_time = settings.http_head_time
    connections = Connections(refusals, context, most=CONNECTIONS, head_time=head_time)
    checked = _checking(RequestChecks(settings.allowed_host, refusals, own_pages=True))
    authorized = _authorizing(settings, reviewer, refusals)
    app = web.Application(middlewares=[checked, authorized, _errors_as_json])
    app.router.add_get("/livez", _live)
    app.router.add_get("/readyz", _ready_handler(checks, notes or {}))
    app.router.add_get(_METRICS, _metrics_handler(registry))
    app.router.add_routes(routes)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=refusals.logger(),
        shutdown_timeout=1.0,
        keepalive_timeout=_KEEP_ALIVE,
        **HEAD_LIMITS,
    )
    await runner.setup()
    try:
        async with _listening(connections, runner, settings, security) as port:
            yield address(settings.admin_host, port)
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


@asynccontextmanager
async def _listening(
    connections: Connections,
    runner: web.AppRunner,
    settings: AdminSettings,
    security: Security,
) -> AsyncIterator[int]:
    host, port = settings.admin_host, settings.admin_port
    security.require(f"listen on {address(host, port)} for the admin server", host)
    async with AsyncExitStack() as stack:
        server = cast("web.Server", runner.server)  # it has one since its setup
        try:
            listener = await stack.enter_async_context(connections.listening(server, host, port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address(host, port)} for the admin server: {cause_of(error)}; "
                "choose another --admin-port"
            ) from error
        yield listener.sockets[0].getsockname()[1]


def _checking(checks: RequestChecks) -> Middleware:
    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (refusal := checks.refusal(request)) is not None:
            return refusal.response()
        connection = connection_of(request)
        if connection is None:
            return await handler(request)
        connection.state = State.BUSY
        try:
            return await handler(request)
        finally:
            connection.become(State.IDLE)

    return checked


def _authorizing(
    settings: AdminSettings, reviewer: TokenReviewer | None, refusals: Refusals
) -> Middleware:
    people, prometheus = settings.operator_identity, settings.metrics_identity
    operators = Callers(people, "--operator-identity", refusals)
    scrapers = Callers((*people, *prometheus), "--operator-identity, --metrics-identity", refusals)

    @web.middleware
    async def authorized(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in _OPEN:
            callers = scrapers if request.path == _METRICS else operators
            refusal = await callers.refusal_of_token(request, reviewer)
            if refusal is not None:
                return refusal.response()
        try:
            return await handler(request)
        except (ForbiddenError, UncheckedError) as error:
            refusals.note("identity", str(error))
            return refusal_of(error).response()

    return authorized


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
        found, noted = problems(checks), problems(notes)
        listed = checks if "verbose" in request.query else found
        answer: dict[str, object] = {
            "status": "not ready" if found else "degraded" if noted else "ok"
        }
        if listed:
            answer["checks"] = [_shown(name, found.get(name), noted.get(name)) for name in listed]
        if noted:
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


def _shown(name: str, reason: str | None, note: str | None) -> dict[str, str]:
    if not (reason or note):
        return {"name": name, "status": "ok"}
    return {
        "name": name,
        "status": "not ready" if reason else "degraded",
        "reason": reason or note or "",
    }


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
