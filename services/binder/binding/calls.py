"""Asks the plugins of a bind, counts their answers, and turns failures into the bind's outcome."""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog

from moorage import Binding, PluginFailedError, Refusal, Wait
from moorage.execution import EnabledPlugin, Profile, Supervisor
from moorage.plugin.points import extension_points
from services.binder.binding.attempt import Attempt
from services.binder.binding.outcomes import BindError, Point, Reason, Result

METHODS = {"Permit": "permit", "PreBind": "pre_bind"}

Answer = TypeVar("Answer")

_log = structlog.get_logger()


class PluginObserver(Protocol):
    """Counts what plugins do."""

    def plugin_ran(self, plugin: str, point: Point, result: Result, seconds: float, /) -> None:
        """Note what a plugin answered at a point, and how long it took."""


class PluginCalls:
    """Asks plugins before a bind, and calls them after it."""

    def __init__(self, observer: PluginObserver) -> None:
        """Have *observer* count."""
        self._observer = observer

    async def before(
        self,
        enabled: EnabledPlugin,
        binding: Binding,
        point: Point,
        ask: Callable[[Supervisor], Awaitable[Answer]],
        attempt: Attempt,
        *,
        otherwise: Answer,
        counts: bool = True,
    ) -> Answer:
        """Return what *ask* does, or *otherwise* if the plugin failed and its failure is ignored.

        Args:
            enabled: The plugin.
            binding: The bind.
            point: Where the plugin is asked.
            ask: Asks it; the supervisor guards it.
            attempt: The attempt, which has a deadline and notes what the plugin did.
            otherwise: The answer of a plugin that need not work.
            counts: Whether the answer is counted, and not only a failure.

        Raises:
            BindError: The plugin refused, or failed.
        """
        supervisor = Supervisor(deadline=attempt.deadline_of_plugins, clock=time.monotonic)
        run = supervisor.begin(enabled)
        result: Result = "failed"
        try:
            answer = await ask(supervisor)
            result = _result(answer)
        except PluginFailedError as error:
            if enabled.aborts:
                message = f"{binding} was not bound: {error}"
                raise BindError(Reason.PLUGIN_FAILED, message) from error
            _warn(binding, error)
            return otherwise
        except TimeoutError as error:
            raise BindError(
                Reason.PLUGIN_FAILED,
                f"{binding} was not bound: plugin {enabled.name} did not end in {METHODS[point]} "
                "before the bind's deadline",
            ) from error
        finally:
            if counts or result == "failed":
                attempt.plugin_ran(enabled.name, point, result, run.seconds)
                self._observer.plugin_ran(enabled.name, point, result, run.seconds)
        if isinstance(answer, Refusal):
            message = f"{binding} was not bound: plugin {enabled.name}: {answer.reason}"
            raise BindError(Reason.REFUSED, message)
        return answer

    async def after(
        self,
        enabled: EnabledPlugin,
        binding: Binding,
        call: Callable[[Supervisor], Awaitable[None]],
    ) -> None:
        """Run *call* once the pod is bound; a failure is logged and counted."""
        supervisor = Supervisor(clock=time.monotonic)
        run = supervisor.begin(enabled)
        result: Result = "failed"
        try:
            await call(supervisor)
            result = "ok"
        except PluginFailedError as error:
            _warn(binding, error)
        finally:
            self._observer.plugin_ran(enabled.name, "PostBind", result, run.seconds)


def with_point(profile: Profile, point: Point) -> list[EnabledPlugin]:
    """Return the plugins of a profile that implement a point, in order."""
    return [e for e in profile.plugins if point in extension_points(type(e.plugin))]


def _result(answer: object) -> Result:
    if isinstance(answer, Wait):
        return "wait"
    return "refused" if isinstance(answer, Refusal) else "ok"


def _warn(binding: Binding, error: PluginFailedError) -> None:
    _log.warning(
        "A bind plugin failed, and the bind goes on",
        plugin=error.plugin,
        pod=f"{binding.namespace}/{binding.name}",
        pod_uid=binding.uid,
        problem=error.problem,
    )
