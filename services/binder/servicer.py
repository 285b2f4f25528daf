"""The binder service on the wire: checks a request, has it done, converts the outcome."""

import asyncio
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
import structlog
from opentelemetry.trace import Tracer

from moorage import BindPlugin
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import binder_pb2_grpc
from moorage_host.kube import KubeError, KubeStatusError, connect
from moorage_host.kube.access import Access
from moorage_host.kube.events import EventWriter
from moorage_host.plugins.registry import load_registry
from moorage_host.process.admin import Check
from moorage_host.process.metrics import count_background_failure
from moorage_host.rpc.describe import describe_plugins
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.serve import ServiceDefinition, Servicer
from moorage_host.tracing.spans import traceparent
from services.binder.binding.binder import Binder
from services.binder.binding.policies import Policies
from services.binder.cluster import PodClient
from services.binder.events import BindEvents
from services.binder.metrics import BindMetrics
from services.binder.plugins import BUILT_INS
from services.binder.retries import Retries
from services.binder.session import Sessions
from services.binder.settings import BinderSettings
from services.binder.snapshots import Snapshots
from services.binder.wire import barrier_to_proto, fence_from_proto, pods_from_proto

Context = grpc.aio.ServicerContext[Any, Any]

FORBIDDEN = grpc.StatusCode.PERMISSION_DENIED

_log = structlog.get_logger()


class BinderServicer(Servicer, binder_pb2_grpc.BinderServiceServicer):
    """Serves gateways, and people."""

    def __init__(self, settings: BinderSettings) -> None:
        """Reach the API server, and load plugins, as *settings* say.

        Raises:
            PluginLoadError: A plugin cannot be loaded.
        """
        self._settings = settings
        self._registry = load_registry(BindPlugin, BUILT_INS, settings.plugin)
        self._policies = Policies(
            self._registry,
            retry_interval=settings.policy_retry_interval,
            count_failure=count_background_failure,
        )
        self._stack = AsyncExitStack()
        self._access = Access(None, ttl=settings.admin_token_ttl)
        self._replica = uuid.uuid4().hex[:12]
        self._tracer: Tracer | None = None

    async def start(self) -> None:
        """Connect to the API server.

        Raises:
            ConfigurationError: There is no usable kubeconfig or service account.
        """
        settings, metrics = self._settings, BindMetrics()
        client = await connect(settings.kubeconfig)
        self._stack.push_async_callback(client.close)
        self._access.client = client
        cluster = PodClient(client, request_timeout=settings.request_timeout)
        instance = f"moorage-binder-{socket.gethostname()}"
        writer = EventWriter(
            client, instance, timeout=settings.request_timeout, count=metrics.event
        )
        self._stack.push_async_callback(self._policies.plugins.close)
        snapshots = Snapshots(settings.max_sessions)
        self._binder = Binder(
            cluster,
            self._policies,
            snapshots,
            limits=settings,
            metrics=metrics,
            events=BindEvents(writer, settings.events),
        )
        self._binder.tracer = self._tracer
        self._snapshots = snapshots
        self._sessions = Sessions(self._binder, self._deadline, settings.max_sessions)
        self._retries = Retries(cluster)
        await self._write_in_background(writer)
        self._stack.push_async_callback(self._binder.drain)
        _log.info("The binder writes to an API server", host=client.host)

    def trace_with(self, tracer: Tracer | None) -> None:
        """Record the spans of binds that are traced."""
        self._tracer = tracer

    def notes(self) -> Mapping[str, Check]:
        """Return what fails in the background of the plugins, and why a policy is refused."""
        host = self._policies.plugins
        return {"plugins": host.background_note, "policy": host.policy_note}

    def reviewer(self) -> Access:
        """Return what asks the API server about bearer tokens."""
        return self._access

    async def drain(self) -> None:
        """Take no more binds on the sessions, and end each when its last one is answered."""
        self._sessions.drain()
        self._binder.end_waiting()
        self._snapshots.drain()

    async def stop(self) -> None:
        """Finish the binds whose callers are gone, write the last Events, and disconnect."""
        await self._stack.aclose()

    async def Bind(self, request: pb.BindRequest, context: Context) -> pb.BindResponse:
        """Bind a pod to a node."""
        request.traceparent = request.traceparent or traceparent()
        return await self._sessions.bind(request, context.time_remaining())

    def Session(  # type: ignore[override]  # the answers are written, not yielded
        self, request_iterator: AsyncIterator[pb.BinderServiceSessionRequest], context: Context
    ) -> Awaitable[None]:
        """Bind many pods to nodes."""
        return self._sessions.run(request_iterator, context)

    def FollowState(
        self, request_iterator: AsyncIterator[pb.BinderServiceFollowStateRequest], context: Context
    ) -> AsyncIterator[pb.BinderServiceFollowStateResponse]:
        """Keep a gateway's state."""
        return self._snapshots.follow(request_iterator, describe_plugins(self._registry))

    async def Barrier(
        self, request: pb.BinderServiceBarrierRequest, context: Context
    ) -> pb.BinderServiceBarrierResponse:
        """Fence the binds of earlier epochs."""
        epoch, holder = fence_from_proto(request)
        return barrier_to_proto(await self._binder.fence.barrier(epoch, holder), self._replica)

    async def RetryPods(
        self, request: pb.BinderServiceRetryPodsRequest, context: Context
    ) -> pb.BinderServiceRetryPodsResponse:
        """Have kube-scheduler try pods again."""
        pods = pods_from_proto(request)
        try:
            written = await self._retries.retry(pods, request.plugin, request.reason)
        except KubeStatusError as error:
            code = FORBIDDEN if error.status in (401, 403) else grpc.StatusCode.UNAVAILABLE
            raise CallError(code, f"pods are not tried again: {error}") from error
        except (KubeError, TimeoutError) as error:
            message = f"pods are not tried again: {error}"
            raise CallError(grpc.StatusCode.UNAVAILABLE, message) from error
        return pb.BinderServiceRetryPodsResponse(written=written)

    async def ListPlugins(
        self, request: pb.BinderServiceListPluginsRequest, context: Context
    ) -> pb.BinderServiceListPluginsResponse:
        """List the plugins of the registry."""
        problems = self._policies.plugins.background_problems()
        plugins = describe_plugins(self._registry, problems)
        return pb.BinderServiceListPluginsResponse(
            plugins=plugins, decisions_for_plugins_only=self._settings.events != "all"
        )

    def _deadline(self, remaining: float | None) -> float:
        seconds = self._settings.bind_timeout
        if remaining is not None:
            seconds = min(seconds, remaining - self._settings.answer_margin)
        return time.monotonic() + seconds

    async def _write_in_background(self, writer: EventWriter) -> None:
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        writing = group.create_task(writer.run())
        self._stack.callback(writing.cancel)
        self._stack.push_async_callback(writer.flush, self._settings.request_timeout)


def binder_service(settings: BinderSettings) -> ServiceDefinition[BinderServicer]:
    """Say how the service is made."""
    return ServiceDefinition(
        name="binder",
        grpc_names=("moorage.v1.BinderService",),
        create=lambda: BinderServicer(settings),
        register=binder_pb2_grpc.add_BinderServiceServicer_to_server,
    )
