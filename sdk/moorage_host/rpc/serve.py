"""Runs a gRPC service from start to drain.

A service's `__main__` is little else:

    DEFINITION = ServiceDefinition(
        name="binder",
        grpc_names=("moorage.v1.BinderService",),
        create=lambda: BinderServicer(settings),
        register=add_BinderServiceServicer_to_server,
    )
    run(serve(DEFINITION, settings))

Everything runs in one task, so a servicer may keep a TaskGroup open between `start` and `stop`: if
a background task fails, the service drains and the process ends with the error.
"""

import asyncio
import faulthandler
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc
import structlog
from opentelemetry.trace import Tracer

from moorage.errors import ConfigurationError
from moorage_host.http.callers import TokenReviewer
from moorage_host.process.admin import Check, address, admin_server, cause_of
from moorage_host.process.lifecycle import AdminSettings, Phase, announce, process
from moorage_host.process.printed import printed_to_log
from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.channel import LARGEST_MESSAGE
from moorage_host.rpc.credentials import ServerCredentials
from moorage_host.rpc.interceptor import CallInterceptor
from moorage_host.rpc.standard import Health, add_reflection
from moorage_host.settings import setting
from moorage_host.tls.identities import GATEWAY, Authorization
from moorage_host.tls.security import Security, is_local, securing
from moorage_host.tracing.sink import sending_spans

log = structlog.get_logger()

LAST_STEP = "_schedule_rpc_coro"
"""The coroutine with which grpc.aio ends a call."""

LAST_STEP_SECONDS = 1.0

SWITCH_SECONDS = 0.0005
"""After which busy threads of plugins let the event loop go on; Python's own is ten times that."""

STUCK_SECONDS = 40.0
"""How long the event loop may stand still; plugins may take 30 s to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings(AdminSettings):
    """Settings of a gRPC service. An inheriting class adds its own."""

    host: str = setting("0.0.0.0", "Address to serve gRPC on.")  # noqa: S104
    port: int = setting(
        50051, "Port to serve gRPC on; 0 takes a free one.", minimum=0, maximum=65535
    )
    share_port: bool = setting(
        False,
        "Let a second process serve on the same port, and go on when this one ends. Not for "
        "containers.",
    )
    max_concurrent_rpcs: int = 32
    """Calls under way, sessions included: each may hold a message. 0 is no limit."""
    max_message_bytes: int = 16 << 20
    """Bytes; a gateway needs 8 for each node and score plugin of a scattered cycle."""
    max_sessions: int = 8
    """Open sessions and streams: a gateway has one, briefly two, so four gateways fit."""
    max_connections: int = 64
    """Connections that may be open; more are closed at once."""
    max_connection_age: float = 120.0
    """Seconds after which clients are asked to connect again, to find new replicas; 0 is never."""
    gateway_identity: tuple[str, ...] = setting(
        (GATEWAY,),
        "DNS names in the certificates of gateways, the only ones that open sessions and bind.",
    )


class Servicer:
    """Optional hooks of a servicer; inherit from this and from the generated class."""

    async def start(self) -> None:
        """Get ready; calls come afterwards. A ConfigurationError ends the process politely."""

    async def drain(self) -> None:
        """End what would stay open by itself, such as sessions. Other calls get time to finish."""

    async def stop(self) -> None:
        """Undo `start`; no call is under way any more."""

    def checks(self) -> Mapping[str, Check]:
        """Return what `/readyz` asks, by name. Must not wait for clients: they wait for it."""
        return {}

    def notes(self) -> Mapping[str, Check]:
        """Return what `/readyz` shows although the service is ready, by name."""
        return {}

    def trace_with(self, tracer: Tracer | None) -> None:
        """Record spans, if anybody wants them; called before `start`."""

    def reviewer(self) -> TokenReviewer | None:
        """Return what knows the bearer tokens of callers of the admin port."""
        return None


ServicerT = TypeVar("ServicerT", bound=Servicer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDefinition(Generic[ServicerT]):
    """A service: its short name, the gRPC services that it serves, and how its servicer is made.

    Ad-hoc calls are limited, if it has a `limit`.
    """

    name: str
    grpc_names: Sequence[str]
    create: Callable[[], ServicerT]
    register: Callable[[ServicerT, grpc.aio.Server], None]
    limit: ConcurrencyLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService(Generic[ServicerT]):
    """A service that serves; addresses are "host:port" with the ports that were bound."""

    servicer: ServicerT
    health: Health
    grpc: str
    admin: str


async def serve(definition: ServiceDefinition[ServicerT], settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    Writes one line of JSON on stdout when it serves: event, service, grpc, admin.

    Raises:
        SystemExit: The user must change something; what it is, is on stderr in one line.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    with process(definition.name, settings) as stop, printed_to_log():
        async with running(definition, settings) as server, _ending_if_stuck():
            announce("serving", service=definition.name, grpc=server.grpc, admin=server.admin)
            await stop.wait()


@asynccontextmanager
async def _ending_if_stuck() -> AsyncIterator[None]:
    """End the process, with a traceback, once its event loop stands still for too long.

    Then plugin code runs that no alarm interrupts: native code that never ends.
    """

    async def watch() -> None:
        while True:
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            await asyncio.sleep(1)

    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            yield
            watching.cancel()
    finally:
        faulthandler.cancel_dump_traceback_later()


@asynccontextmanager
async def running(
    definition: ServiceDefinition[ServicerT], settings: ServerSettings
) -> AsyncIterator[RunningService[ServicerT]]:
    """Serve until the block is left, then drain. For tests, and for several services in a process.

    Raises:
        ConfigurationError: A port is taken, or the servicer cannot start.
    """
    phase = Phase()
    servicer = definition.create()
    checks = {"serving": phase.problem, **servicer.checks()}
    async with AsyncExitStack() as stack:
        security = await stack.enter_async_context(securing(settings))
        tracer = await stack.enter_async_context(sending_spans(definition.name))
        servicer.trace_with(tracer)
        admin = await stack.enter_async_context(
            admin_server(
                settings,
                checks=checks,
                notes={"tls": security.note, **servicer.notes()},
                security=security,
                reviewer=servicer.reviewer(),
            )
        )
        security.require(f"listen on {address(settings.host, settings.port)}", settings.host)
        if not settings.share_port:
            _require_free(settings.host, settings.port)
        await servicer.start()
        stack.push_async_callback(servicer.stop)
        server, port = await stack.enter_async_context(
            _listening_server(definition.limit, settings, security, tracer)
        )
        definition.register(servicer, server)
        health = Health(definition.grpc_names, server)
        if _reflects(settings):
            add_reflection(definition.grpc_names, server)
        await health.serving()
        await server.start()
        stack.push_async_callback(_stop, server, settings.shutdown_grace)
        stack.push_async_callback(servicer.drain)
        stack.push_async_callback(_become_unready, phase, health, settings)
        phase.name = "serving"
        log.info("The service serves", service=definition.name, port=port, admin=admin)
        grpc_address = address(settings.host, port)
        yield RunningService(servicer=servicer, health=health, grpc=grpc_address, admin=admin)


async def _stop(server: grpc.aio.Server, grace: float) -> None:
    await server.stop(grace)
    # It does not wait for the last step of calls that were answered just now. They would be
    # cancelled in the end, with a traceback in the log.
    tasks = {t for t in asyncio.all_tasks() if getattr(t.get_coro(), "__name__", "") == LAST_STEP}
    if tasks:
        await asyncio.wait(tasks, timeout=LAST_STEP_SECONDS)


@asynccontextmanager
async def _listening_server(
    limit: ConcurrencyLimit | None,
    settings: ServerSettings,
    security: Security,
    tracer: Tracer | None,
) -> AsyncIterator[tuple[grpc.aio.Server, int]]:
    certificates = security.certificates
    authorization = Authorization(
        gateway=settings.gateway_identity, operator=settings.operator_identity
    )
    server = grpc.aio.server(
        interceptors=[CallInterceptor(limit, authorization if certificates else None, tracer)],
        options=_options(settings),
        maximum_concurrent_rpcs=settings.max_concurrent_rpcs or None,
    )
    listen = address(settings.host, settings.port)
    if certificates is None:
        yield server, server.add_insecure_port(listen)
        return
    credentials = ServerCredentials(certificates)
    port = server.add_secure_port(listen, credentials.grpc)
    following = asyncio.create_task(credentials.follow(settings.host, port))
    try:
        yield server, port
    finally:
        following.cancel()


def _options(settings: ServerSettings) -> Sequence[tuple[str, int]]:
    options = [
        ("grpc.so_reuseport", int(settings.share_port)),  # by default without a word
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.max_send_message_length", LARGEST_MESSAGE),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        # A busy machine delivers pings late and together: no reason to cut a gateway's session.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_permit_without_calls", 1),
        # A gateway whose machine is gone must not keep its session, nor its state.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
    ]
    if settings.max_connection_age:
        # Without grpc.max_connection_age_grace_ms: streams on an old connection are never cut.
        age = round(settings.max_connection_age * 1000)
        options.append(("grpc.max_connection_age_ms", max(age, 1)))
    return options


def _reflects(settings: ServerSettings) -> bool:
    """Whether clients such as grpcurl may list the methods: where it is known who calls."""
    return settings.tls is not None or is_local(settings.host)


def _require_free(host: str, port: int) -> None:
    """Fail with the system's reason; grpc gives none, and writes lines of its own on stderr."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {address(host, port)}: {cause_of(error)}; "
            "choose another --port or --host"
        ) from error


async def _become_unready(phase: Phase, health: Health, settings: ServerSettings) -> None:
    log.info("The service drains", delay=settings.shutdown_delay, grace=settings.shutdown_grace)
    phase.name = "shutting down"
    await health.shut_down()
    await asyncio.sleep(settings.shutdown_delay)
