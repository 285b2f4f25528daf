"""The binder service on the wire: checks a request, has it done, converts the outcome."""

import asyncio
import re
import socket
import time
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import msgspec
import structlog

from moorage import Binding, BindPlugin, DecisionSummary
from moorage.errors import ConfigurationError
from moorage.kube import connect
from moorage.registry import load_registry
from moorage.rpc.describe import describe_plugin
from moorage.rpc.errors import CallError
from moorage.rpc.serve import ServiceDefinition, Servicer
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import binder_pb2_grpc
from services.binder.attempt import RetryLimits
from services.binder.binding import Binder, BindLimits
from services.binder.cluster import Cluster
from services.binder.events import EventRecorder
from services.binder.metrics import BindReporter, EventMetrics
from services.binder.model import BindError, Outcome, Reason
from services.binder.plugins import BUILT_INS
from services.binder.policies import Policies, PolicyText
from services.binder.settings import BinderSettings

Context = grpc.aio.ServicerContext[Any, Any]

CODES = {
    Reason.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.OTHER_UID: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.TERMINATING: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.GATED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.BOUND_ELSEWHERE: grpc.StatusCode.ALREADY_EXISTS,
    Reason.REFUSED: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.PLUGIN_FAILED: grpc.StatusCode.ABORTED,
    Reason.POLICY: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    Reason.OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.DEADLINE: grpc.StatusCode.DEADLINE_EXCEEDED,
}

OUTCOMES = {Outcome.BOUND: pb.OUTCOME_BOUND, Outcome.ALREADY_BOUND: pb.OUTCOME_ALREADY_BOUND}

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_PART}(\.{_PART})*")
_UID = re.compile(r"[!-~]{1,253}")
_FORMS = {"namespace": _LABEL, "name": _SUBDOMAIN, "uid": _UID, "node": _SUBDOMAIN}

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
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Connect to the API server.

        Raises:
            ConfigurationError: There is no usable kubeconfig or service account, or settings
                contradict each other.
        """
        settings, limits = self._settings, _limits(self._settings)
        client = await connect(settings.kubeconfig, context=settings.context)
        self._stack.push_async_callback(client.close)
        cluster = Cluster(client, request_timeout=settings.request_timeout)
        recorder = EventRecorder(
            cluster,
            mode=settings.events,
            queue=settings.event_queue,
            instance=f"moorage-binder-{socket.gethostname()}",
            observer=EventMetrics(),
        )
        policies = Policies(self._registry)
        self._stack.push_async_callback(policies.close)
        self._binder = Binder(cluster, policies, limits=limits, observer=BindReporter(recorder))
        await self._write_in_background(recorder)
        self._stack.push_async_callback(self._binder.drain)
        _log.info("The binder writes to an API server", host=client.host)

    async def stop(self) -> None:
        """Finish the binds whose callers are gone, write the last Events, and disconnect."""
        await self._stack.aclose()

    async def Bind(self, request: pb.BindRequest, context: Context) -> pb.BindResponse:
        """Bind a pod to a node."""
        binding = _binding(request)
        try:
            outcome = await self._binder.bind(
                binding, deadline=self._deadline(context), policy=_policy(request)
            )
        except BindError as error:
            raise CallError(CODES[error.reason], str(error), error.reason.name) from error
        return pb.BindResponse(outcome=OUTCOMES[outcome])

    async def ListPlugins(
        self, request: pb.BinderServiceListPluginsRequest, context: Context
    ) -> pb.BinderServiceListPluginsResponse:
        """List the plugins of the registry."""
        plugins = [describe_plugin(self._registry, name) for name in self._registry]
        return pb.BinderServiceListPluginsResponse(plugins=plugins)

    def _deadline(self, context: Context) -> float:
        remaining = context.time_remaining()
        seconds = self._settings.bind_timeout
        if remaining is not None:
            seconds = min(seconds, remaining - self._settings.answer_margin)
        return time.monotonic() + seconds

    async def _write_in_background(self, recorder: EventRecorder) -> None:
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        writer = group.create_task(recorder.run())
        self._stack.callback(writer.cancel)
        self._stack.push_async_callback(recorder.flush, self._settings.request_timeout)


def binder_service(settings: BinderSettings) -> ServiceDefinition[BinderServicer]:
    """Say how the service is made."""
    return ServiceDefinition(
        name="binder",
        grpc_name="moorage.v1.BinderService",
        create=lambda: BinderServicer(settings),
        register=binder_pb2_grpc.add_BinderServiceServicer_to_server,
    )


def _limits(settings: BinderSettings) -> BindLimits:
    if settings.retry_initial > settings.retry_maximum:
        raise ConfigurationError(
            f"--retry-initial is {settings.retry_initial} s, more than --retry-maximum, which is "
            f"{settings.retry_maximum} s; lower the first or raise the second"
        )
    retries = RetryLimits(
        initial=settings.retry_initial,
        maximum=settings.retry_maximum,
        reserve=settings.retry_reserve,
    )
    return BindLimits(
        concurrency=settings.concurrency, waiting=settings.max_waiting, retries=retries
    )


def _binding(request: pb.BindRequest) -> Binding:
    for field, form in _FORMS.items():
        value = getattr(request, field)
        if not form.fullmatch(value):
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"cannot bind: {field} is {value[:253]!r}, which is no Kubernetes {field}"
                if value
                else f"cannot bind: {field} is missing",
            )
    return Binding(
        namespace=request.namespace,
        name=request.name,
        uid=request.uid,
        node=request.node,
        annotations=dict(request.annotations),
        profile=request.profile,
        decision=_decision(request.decision),
    )


def _policy(request: pb.BindRequest) -> PolicyText | None:
    if not request.policy.revision:
        return None
    return PolicyText(revision=request.policy.revision, content=request.policy.json)


def _decision(content: bytes) -> DecisionSummary | None:
    if not content:
        return None
    try:
        return msgspec.json.decode(content, type=DecisionSummary)
    except msgspec.DecodeError as error:
        raise CallError(
            grpc.StatusCode.INVALID_ARGUMENT, f"cannot bind: decision is malformed: {error}"
        ) from error
