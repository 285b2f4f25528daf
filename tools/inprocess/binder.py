"""What the tests of the binder share."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from moorage import Binding, BindPlugin
from moorage.v1 import binder_pb2 as pb
from moorage_host.kube import KubeClient
from moorage_host.plugins.registry import Registry
from moorage_host.policy import EffectivePlugin, EffectivePolicy, EffectiveProfile, encode_effective
from moorage_host.rpc.serve import RunningService, running
from services.binder.binding.binder import Binder, too_late
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, BindResult
from services.binder.binding.policies import Policies, PolicyText
from services.binder.cluster import PodClient
from services.binder.metrics import BindMetrics
from services.binder.servicer import BinderServicer, binder_service
from services.binder.settings import BinderSettings
from services.binder.snapshots import Snapshots
from tools.inprocess.api import Object, send

BINDINGS = ("create", "pods/binding")
FAST: dict[str, Any] = {"retry_initial": 0.01, "retry_maximum": 0.05, "retry_reserve": 0.4}


class Observed(BindMetrics):
    """Remembers what a binder tells."""

    def __init__(self) -> None:
        self.running: Callable[[], int] = lambda: 0
        self.retries: list[str] = []
        self.ends: list[BindResult | BindError] = []
        self.plugins: list[tuple[str, str, str]] = []
        self.now_waiting = 0
        self.waits: list[str] = []
        self.together_ends: list[str] = []
        self.epochs: list[int] = []
        self.stages: list[str] = []
        self.events: list[str] = []

    def show_running(self, count: Callable[[], int]) -> None:
        self.running = count

    def retried(self, cause: str) -> None:
        self.retries.append(cause)

    def plugin_ran(self, plugin: str, point: str, result: str, seconds: float) -> None:
        self.plugins.append((plugin, point, result))

    def waiting(self, change: int) -> None:
        self.now_waiting += change

    def waited(self, end: str, seconds: float) -> None:
        self.waits.append(end)

    def together(self, outcome: str) -> None:
        self.together_ends.append(outcome)

    def epoch_raised(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def fenced(self, stage: str) -> None:
        self.stages.append(stage)

    def barrier(self, seconds: float, *, is_held: bool) -> None:
        pass

    def on_bind_end(self, binding: Binding, result: BindResult | BindError, seconds: float) -> None:
        self.ends.append(result)

    def event(self, result: str) -> None:
        self.events.append(result)


class TrackedCluster(PodClient):
    """Notes what is written, and how many binds talk to the API server at the same time."""

    now = 0
    peak = 0

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.posts: list[str] = []

    async def create_binding(self, binding: Binding, *, dry_run: bool = False) -> None:
        self.posts.append(f"{binding.name} to {binding.node}{' (dry run)' * dry_run}")
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await super().create_binding(binding, dry_run=dry_run)
        finally:
            self.now -= 1


class World:
    """A binder on an API server."""

    def __init__(
        self,
        client: KubeClient,
        *,
        request_timeout: float = 0.1,  # limits no bind
        plugins: Sequence[type[BindPlugin]] = (),
        **limits: Any,
    ) -> None:
        self.observed = Observed()
        self.cluster = TrackedCluster(client, request_timeout=request_timeout)
        self.snapshots = Snapshots()
        self.binder = Binder(
            self.cluster,
            Policies(Registry(BindPlugin, plugins)),
            self.snapshots,
            limits=BindLimits(**FAST, **limits),
            metrics=self.observed,
        )

    async def bind(
        self,
        pod: Object,
        node: str = "node-a",
        *,
        seconds: float = 10.0,
        epoch: int = 0,
        policy: PolicyText | None = None,
        **more: Any,
    ) -> BindResult:
        binding = binding_of(pod, node, **more)
        return await bound(self.binder, binding, seconds, epoch=epoch, policy=policy)

    def begin(self, pod: Object, *args: Any, **more: Any) -> asyncio.Task[BindResult]:
        """Begin to bind a pod, as `bind` does."""
        return asyncio.create_task(self.bind(pod, *args, **more))


async def refused(bind: Awaitable[BindResult]) -> BindError:
    """Return why a bind is refused; fail if it is not."""
    try:
        result = await bind
    except BindError as error:
        return error
    raise AssertionError(f"it is not refused: {result}")


async def bound(binder: Binder, binding: Binding, seconds: float, **more: Any) -> BindResult:
    """Begin a bind, and wait for it, as a session does; to hang up cancels no bind."""
    task = binder.begin(binding, deadline=time.monotonic() + seconds, **more).task
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)
    except TimeoutError as error:
        raise too_late(binding) from error


def binding_of(pod: Object, node: str = "node-a", **more: Any) -> Binding:
    metadata = pod["metadata"]
    return Binding(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        node=node,
        **more,
    )


async def events_of(client: KubeClient) -> list[Object]:
    """Return the Events in the namespace default."""
    answer = await send(client, "GET", "/apis/events.k8s.io/v1/namespaces/default/events")
    items: list[Object] = answer["items"]
    return items


def policy_of(*plugins: str, profile: str = "default-scheduler", **more: Any) -> PolicyText:
    """Make a policy with one profile, that of pods which name no scheduler."""
    fields = {"failure_policy": "Abort", "time_budget_seconds": 5.0, **more}
    entries = tuple(EffectivePlugin(name=name, **fields) for name in plugins)
    policy = EffectivePolicy(profiles=(EffectiveProfile(name=profile, plugins=entries),))
    return PolicyText(revision=policy.revision, content=encode_effective(policy))


def settings_for(kubeconfig: Path, **more: Any) -> BinderSettings:
    """Settings of a binder that serves on free ports of this machine."""
    return BinderSettings(
        kubeconfig=kubeconfig,
        host="127.0.0.1",
        port=0,
        admin_host="127.0.0.1",
        admin_port=0,
        shutdown_delay=0.0,
        **more,
    )


@asynccontextmanager
async def serving(
    kubeconfig: Path, **more: Any
) -> AsyncIterator[tuple[RunningService[BinderServicer], grpc.aio.Channel]]:
    """Run a binder in this process; yield it and a channel to it."""
    settings = settings_for(kubeconfig, **more)
    async with (
        running(binder_service(settings), settings) as service,
        grpc.aio.insecure_channel(service.grpc) as channel,
    ):
        yield service, channel


def request(pod: Object, node: str = "node-a", **changes: Any) -> pb.BindRequest:
    """Ask for a bind of a pod."""
    metadata = pod["metadata"]
    fields = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return pb.BindRequest(**{**fields, "node": node, "profile": "default-scheduler", **changes})
