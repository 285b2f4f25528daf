"""Permit, PreBind, the bind itself, PostBind: a binding cycle.

Called by `binding` for binds that come with a policy; the others have no plugins to run.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Literal, Protocol

import structlog

from moorage import Binding, BindPlugin, Nodes
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_before_bind, call_after_bind
from moorage.snapshot import Snapshot
from services.binder.binding.attempt import Attempt
from services.binder.binding.calls import PluginCalls, with_point
from services.binder.binding.outcomes import BindError, Outcome, Reason
from services.binder.binding.permit import Permits
from services.binder.binding.policies import Policies, PolicyRefusedError, PolicyText

NO_PLUGINS = Profile(name="", plugins=())

_log = structlog.get_logger()


class SnapshotSource(Protocol):
    """Gets the state of the cluster."""

    async def at_least(self, holder: str, generation: int, deadline: float) -> Snapshot:
        """Return the snapshot of a holder once it has a generation; of anybody if that is "".

        Raises:
            TimeoutError: It does not by *deadline*, on the monotonic clock.
        """


class BindingCycles:
    """Runs the bind plugins of a pod's profile around its bind.

    Args:
        policies: The plugins.
        calls: Asks the plugins.
        permits: Lets binds wait for others.
        snapshots: The state of the cluster, for plugins that read it.
        slots: Binds that may talk to the API server at the same time; plugins wait outside.
    """

    def __init__(
        self,
        policies: Policies,
        calls: PluginCalls,
        permits: Permits,
        snapshots: SnapshotSource,
        *,
        slots: asyncio.Semaphore,
    ) -> None:
        self._policies = policies
        self._calls = calls
        self._permits = permits
        self._snapshots = snapshots
        self._slots = slots
        self._afterwards: set[asyncio.Task[None]] = set()

    async def run(
        self, attempt: Attempt, binding: Binding, text: PolicyText, *, look_first: bool
    ) -> Outcome:
        """Bind the pod unless a plugin refuses; PostBind plugins may still run on return.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        async with AsyncExitStack() as stack:
            try:
                policy = await stack.enter_async_context(self._policies.using(text))
            except PolicyRefusedError as error:
                message = f"{binding} was not bound: the binder cannot use the policy: {error}"
                raise BindError(Reason.POLICY, message) from error
            profile = policy.profiles.get(binding.profile, NO_PLUGINS)
            outcome: Outcome | None = None
            if not binding.profile or _reads(profile, "reads_pod"):
                async with self._slots:
                    pod, outcome = await attempt.look()
                binding = replace(binding, known_pod=pod, profile=pod.spec.scheduler_name)
                profile = policy.profiles.get(binding.profile, NO_PLUGINS)
            if outcome is Outcome.ALREADY_BOUND:
                return outcome
            if _reads(profile, "reads_snapshot"):
                binding = replace(binding, known_nodes=await self._nodes(binding, attempt))
            if outcome is None:
                await self._permits.pass_all(profile, binding, attempt)
                await self._before(profile, binding, attempt)
                async with self._slots:
                    outcome = await attempt.run(look_first=look_first)
            if outcome is Outcome.BOUND:
                self._begin_afterwards(profile, binding, stack.pop_all())
            return outcome

    async def drain(self) -> None:
        """Wait until no PostBind plugin runs; each ends within its time budget."""
        while self._afterwards:
            await asyncio.wait(self._afterwards)

    async def _nodes(self, binding: Binding, attempt: Attempt) -> Callable[[], Nodes]:
        """Return what returns the nodes of the snapshot, once it is as new as the decision."""
        try:
            deadline = attempt.deadline_of_plugins
            wanted = binding.holder, binding.generation
            snapshot = await self._snapshots.at_least(*wanted, deadline)
        except TimeoutError as error:
            message = f"{binding} was not bound: the binder has no state of the cluster for plugins"
            raise BindError(Reason.UNAVAILABLE, f"{message}; try again") from error
        return snapshot.nodes

    async def _before(self, profile: Profile, binding: Binding, attempt: Attempt) -> None:
        for enabled in with_point(profile, "PreBind"):
            await self._pre_bind(enabled, binding, attempt)

    async def _pre_bind(self, enabled: EnabledPlugin, binding: Binding, attempt: Attempt) -> None:
        await self._calls.before(
            enabled,
            binding,
            "PreBind",
            lambda supervisor: ask_before_bind(enabled, binding, supervisor),
            attempt,
            otherwise=None,
        )

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
                await self._post_bind(enabled, binding)

    async def _post_bind(self, enabled: EnabledPlugin, binding: Binding) -> None:
        def call(supervisor: Supervisor) -> Coroutine[Any, Any, None]:
            return call_after_bind(enabled, binding, supervisor)

        await self._calls.after(enabled, binding, call)


def _reads(profile: Profile, what: Literal["reads_pod", "reads_snapshot"]) -> bool:
    plugins = (enabled.plugin for enabled in profile.plugins)
    return any(isinstance(plugin, BindPlugin) and getattr(plugin, what) for plugin in plugins)
