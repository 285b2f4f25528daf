"""PreBind, the bind itself, PostBind: Kubernetes calls the three a binding cycle.

Called by `binding` for binds that come with a policy; the others have no plugins to run.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Literal, Protocol

import structlog

from moorage import Binding, BindPlugin, PluginFailedError, Refusal
from moorage.execution import EnabledPlugin, Profile, Supervisor, ask_before_bind, call_after_bind
from moorage.plugin.points import extension_points
from services.binder.binding.attempt import Attempt
from services.binder.binding.outcomes import BindError, Outcome, Reason
from services.binder.binding.policies import Policies, PolicyRefusedError, PolicyText

Point = Literal["PreBind", "PostBind"]
Result = Literal["ok", "refused", "failed"]

NO_PLUGINS = Profile(name="", plugins=())

_log = structlog.get_logger()


class PluginObserver(Protocol):
    """Counts what plugins do."""

    def plugin_ran(self, plugin: str, point: Point, result: Result, seconds: float, /) -> None:
        """Note what a plugin answered at a point, and how long it took."""


class BindingCycles:
    """Runs the bind plugins of a pod's profile around its bind.

    Args:
        policies: The plugins.
        slots: Binds that may talk to the API server at the same time; plugins wait outside.
        observer: Who counts.
    """

    def __init__(
        self, policies: Policies, *, slots: asyncio.Semaphore, observer: PluginObserver
    ) -> None:
        self._policies = policies
        self._slots = slots
        self._observer = observer
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
            if not binding.profile or _reads_pod(profile):
                async with self._slots:
                    pod = await attempt.look()
                if pod is None:
                    return Outcome.ALREADY_BOUND
                binding = replace(binding, known_pod=pod, profile=pod.spec.scheduler_name)
                profile = policy.profiles.get(binding.profile, NO_PLUGINS)
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

    async def _before(self, profile: Profile, binding: Binding, attempt: Attempt) -> None:
        for enabled in _with_point(profile, "PreBind"):
            refusal = await self._ask(enabled, binding, attempt.deadline_of_plugins)
            if refusal is not None:
                message = f"{binding} was not bound: plugin {enabled.name}: {refusal.reason}"
                raise BindError(Reason.REFUSED, message)

    async def _ask(
        self, enabled: EnabledPlugin, binding: Binding, deadline: float
    ) -> Refusal | None:
        supervisor = Supervisor(deadline=deadline, clock=time.monotonic)
        run = supervisor.begin(enabled)
        result: Result = "failed"
        try:
            refusal = await ask_before_bind(enabled, binding, supervisor)
            result = "refused" if refusal else "ok"
        except PluginFailedError as error:
            if enabled.aborts:
                message = f"{binding} was not bound: {error}"
                raise BindError(Reason.PLUGIN_FAILED, message) from error
            _warn(binding, error)
            return None
        except TimeoutError as error:
            raise BindError(
                Reason.PLUGIN_FAILED,
                f"{binding} was not bound: plugin {enabled.name} did not end in pre_bind before "
                "the bind's deadline",
            ) from error
        finally:
            self._observer.plugin_ran(enabled.name, "PreBind", result, run.seconds)
        return refusal

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
            for enabled in _with_point(profile, "PostBind"):
                await self._post_bind(enabled, binding)

    async def _post_bind(self, enabled: EnabledPlugin, binding: Binding) -> None:
        supervisor = Supervisor(clock=time.monotonic)
        run = supervisor.begin(enabled)
        result: Result = "failed"
        try:
            await call_after_bind(enabled, binding, supervisor)
            result = "ok"
        except PluginFailedError as error:
            _warn(binding, error)
        finally:
            self._observer.plugin_ran(enabled.name, "PostBind", result, run.seconds)


def _with_point(profile: Profile, point: Point) -> list[EnabledPlugin]:
    return [e for e in profile.plugins if point in extension_points(type(e.plugin))]


def _reads_pod(profile: Profile) -> bool:
    plugins = (enabled.plugin for enabled in profile.plugins)
    return any(isinstance(plugin, BindPlugin) and plugin.reads_pod for plugin in plugins)


def _warn(binding: Binding, error: PluginFailedError) -> None:
    _log.warning(
        "A bind plugin failed, and the bind goes on",
        plugin=error.plugin,
        pod=f"{binding.namespace}/{binding.name}",
        pod_uid=binding.uid,
        problem=error.problem,
    )
