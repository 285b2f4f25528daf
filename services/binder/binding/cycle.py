"""Permit, PreBind, the bind itself, PostBind: a binding cycle.

Called by `binder` for binds that come with a policy; the others have no plugins to run.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Literal

import structlog

from moorage import Binding, BindPlugin, Nodes, PluginFailedError
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_before_bind, call_after_bind
from services.binder.binding.attempt import BindAttempt, warn
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, BindReason, BindResult, Result
from services.binder.binding.permit import Permits, with_point
from services.binder.binding.policies import Policies, PolicyText, PolicyUnusableError
from services.binder.metrics import BindMetrics
from services.binder.snapshots import Snapshots

NO_PLUGINS = Profile(name="", plugins=())

_log = structlog.get_logger()


class BindingCycles:
    """Runs the bind plugins of a pod's profile around its bind.

    Args:
        policies: The plugins.
        snapshots: The state of the cluster, for plugins that read it.
        limits: How many binds may wait for others, and how long.
        metrics: What counts.
        slots: Binds that may talk to the API server at the same time; plugins wait outside.

    Attributes:
        permits: Lets binds wait for others.
    """

    def __init__(
        self,
        policies: Policies,
        snapshots: Snapshots,
        limits: BindLimits,
        metrics: BindMetrics,
        slots: asyncio.Semaphore,
    ) -> None:
        self.permits = Permits(limits, metrics)
        self._policies = policies
        self._snapshots = snapshots
        self._metrics = metrics
        self._slots = slots
        self._afterwards: set[asyncio.Task[None]] = set()

    async def run(self, attempt: BindAttempt, text: PolicyText, *, look_first: bool) -> BindResult:
        """Bind the pod unless a plugin refuses; PostBind plugins may still run on return.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        binding = attempt.binding
        async with AsyncExitStack() as stack:
            try:
                policy = await stack.enter_async_context(self._policies.using(text))
            except PolicyUnusableError as error:
                message = f"{binding} was not bound: the binder cannot use the policy: {error}"
                raise BindError(BindReason.POLICY, message) from error
            profile = policy.profiles.get(binding.profile, NO_PLUGINS)
            outcome: BindResult | None = None
            if not binding.profile or _reads(profile, "reads_pod"):
                async with self._slots:
                    pod, outcome = await attempt.look()
                binding = replace(binding, known_pod=pod, profile=pod.spec.scheduler_name)
                profile = policy.profiles.get(binding.profile, NO_PLUGINS)
            if outcome is BindResult.ALREADY_BOUND:
                return outcome
            if _reads(profile, "reads_snapshot"):
                binding = replace(binding, known_nodes=await self._nodes(binding, attempt))
            if outcome is None:
                outcome = await self._bind(profile, binding, attempt, look_first=look_first)
            if outcome is BindResult.BOUND and with_point(profile, "PostBind"):
                self._begin_afterwards(profile, binding, stack.pop_all())
            return outcome

    async def _bind(
        self, profile: Profile, binding: Binding, attempt: BindAttempt, *, look_first: bool
    ) -> BindResult:
        async def prepare(has_others: bool) -> None:
            for enabled in with_point(profile, "PreBind"):
                await _pre_bind(enabled, binding, attempt)
            if has_others:
                async with self._slots:
                    await attempt.rehearse(binding)

        is_one_of_several = await self.permits.pass_all(profile, binding, attempt, prepare)
        try:
            async with self._slots:
                outcome = await attempt.run(look_first=look_first)
        except BindError:
            if is_one_of_several:
                self._metrics.together("failed")
            raise
        if is_one_of_several:
            self._metrics.together("bound")
        return outcome

    async def drain(self) -> None:
        """Wait until no PostBind plugin runs; each ends within its time budget."""
        while self._afterwards:
            await asyncio.wait(self._afterwards)

    async def _nodes(self, binding: Binding, attempt: BindAttempt) -> Callable[[], Nodes]:
        """Return what returns the nodes of the snapshot, once it is as new as the decision."""
        try:
            snapshot = await self._snapshots.at_least(
                binding.holder, binding.generation, attempt.deadline_of_plugins
            )
        except TimeoutError as error:
            message = f"{binding} was not bound: the binder has no state of the cluster for plugins"
            raise BindError(BindReason.UNAVAILABLE, f"{message}; try again") from error
        return snapshot.nodes

    def _begin_afterwards(self, profile: Profile, binding: Binding, stack: AsyncExitStack) -> None:
        """Run the PostBind plugins in the background; the stack keeps their policy meanwhile."""
        task = asyncio.create_task(self._after(profile, binding, stack))
        self._afterwards.add(task)
        task.add_done_callback(lambda _: self._finish(binding, task))

    def _finish(self, binding: Binding, task: asyncio.Task[None]) -> None:
        self._afterwards.discard(task)
        error = None if task.cancelled() else task.exception()
        if error:
            _log.error("PostBind failed unexpectedly", pod_uid=binding.uid, exc_info=error)

    async def _after(self, profile: Profile, binding: Binding, stack: AsyncExitStack) -> None:
        async with stack:
            for enabled in with_point(profile, "PostBind"):
                owner = (binding.namespace, binding.name)
                supervisor = Supervisor(owner=owner, clock=time.monotonic)
                run = supervisor.begin(enabled)
                result: Result = "failed"
                try:
                    await call_after_bind(enabled, binding, supervisor)
                    result = "ok"
                except PluginFailedError as error:
                    warn(binding, error)
                finally:
                    self._metrics.plugin_ran(enabled.name, "PostBind", result, run.seconds)


async def _pre_bind(enabled: EnabledPlugin, binding: Binding, attempt: BindAttempt) -> None:
    await attempt.ask(
        enabled,
        "PreBind",
        lambda supervisor: ask_before_bind(enabled, binding, supervisor),
        otherwise=None,
    )


def _reads(profile: Profile, what: Literal["reads_pod", "reads_snapshot"]) -> bool:
    plugins = (enabled.plugin for enabled in profile.plugins)
    return any(isinstance(plugin, BindPlugin) and getattr(plugin, what) for plugin in plugins)
