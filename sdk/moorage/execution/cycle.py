"""One cycle's dealings with plugins: supervision, reports, and the step before the nodes."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from moorage.errors import PluginFailedError
from moorage.execution import mark
from moorage.execution.alarm import BudgetExceededError, Stepwise, call_within
from moorage.execution.failure import overrun_of, problem_of, where
from moorage.execution.overruns import Owner
from moorage.models import Pod
from moorage.plugin.cycle_state import KeptValue, join_kept
from moorage.plugin.errors import WrongTypeError
from moorage.plugin.hooks import Plugin
from moorage.plugin.values import Preparation
from moorage.snapshot import Nodes

if TYPE_CHECKING:
    from moorage.execution.enabled import EnabledPlugin

T = TypeVar("T")

NODE_POINTS = frozenset(("filter", "filter_node", "score", "score_node"))
"""Where plugins look at the nodes that a replica is asked about, which may be some of a cycle's."""

LEAST_STEP = 0.2
"""Seconds of a step, if it had so many, that a share of it has at least: a busy machine pauses."""

DEADLINE_PASSED = "the cycle's deadline passed"


class PluginRun(msgspec.Struct, kw_only=True):
    """What one plugin did in one cycle.

    Attributes:
        plugin: The plugin's name.
        start: When it began, on the supervisor's clock.
        seconds: The time that it took, at all its extension points together.
        node_seconds: The part of it that it took to filter or score.
        failure: Why it was left out, with file and line; empty if it was not.
        skipped: It does not apply to the pod.
        note: Its note about the cycle, also if it failed or skipped.
        kept: What it keeps for the bind, by key.
    """

    plugin: str
    start: float = 0.0
    seconds: float = 0.0
    node_seconds: float = 0.0
    failure: str = ""
    skipped: bool = False
    note: str = ""
    kept: Mapping[str, KeptValue] = {}


class Supervisor(msgspec.Struct, kw_only=True):
    """Runs plugin code within its time budget and turns its failures into one exception.

    Attributes:
        owner: The pod that plugins are called for.
        deadline: When the cycle must be over, on *clock*, in seconds.
        step: What the default time budget is worth here where a plugin waits for nothing, in
            seconds.
        clock: A monotonic clock.
        runs: What the plugins of this cycle did, in order.
        refused: Plugins that are not called in this cycle, and why not, by their names.
    """

    owner: Owner = ("", "")
    deadline: float = float("inf")
    step: float = float("inf")
    clock: Callable[[], float] = time.perf_counter
    runs: list[PluginRun] = []
    refused: Mapping[str, str] = {}

    def begin(self, enabled: "EnabledPlugin") -> PluginRun:
        """Start the report of the next plugin."""
        kept = enabled.cycle_state
        if kept.values or kept.note:
            kept.begin()
        run = PluginRun(plugin=enabled.name, start=self.clock())
        self.runs.append(run)
        if mark.memory[mark.COUNT] < 255:
            mark.memory[mark.COUNT] += 1
        return run

    def call(
        self, enabled: "EnabledPlugin", point: str, function: Callable[..., T], *args: Any
    ) -> T:
        """Call *function* with *args*: plugin code and the checks of its answer.

        Whatever it raises is the plugin's failure, be it a `CancelledError` or a
        `KeyboardInterrupt`: nobody else can raise in a call that waits for nothing.

        Raises:
            PluginFailedError: The code raised, took longer than its budget, or is not called for
                this pod now because of former overruns or crashes.
            TimeoutError: The cycle's deadline passed.
        """
        if enabled.overruns.pods or self.refused:
            self._check_called(enabled, point)
        start = self.clock()
        own, share = self._budget(enabled, start, is_step=True)
        mark.memory[mark.PLUGIN] = enabled.mark
        try:
            result = call_within(min(own * share, self.deadline - start), function, *args)
        except BaseException as error:
            raise self._failed(enabled, point, error, start, own, share) from error
        finally:
            mark.memory[mark.RUNS] = 0
            seconds = self._ended(enabled, start)
            if point in NODE_POINTS:
                self.runs[-1].node_seconds += seconds
        if enabled.overruns.pods:
            enabled.overruns.succeeded(self.owner, point)
        return result

    async def prepare(self, enabled: "EnabledPlugin", pod: Pod, nodes: Nodes) -> Preparation | None:
        """Run the plugin's `prepare`, if it has one.

        Raises:
            PluginFailedError: It raised, returned something else, or took longer than its budget.
            TimeoutError: The cycle's deadline passed.
        """
        if not enabled.prepares:
            return None
        return await self.wait_for(enabled, "prepare", _prepare, enabled.plugin, pod, nodes)

    async def wait_for(
        self,
        enabled: "EnabledPlugin",
        point: str,
        function: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
    ) -> T:
        """Await what *function* with *args* returns: plugin code and the checks of its answer.

        An alarm guards each of its steps.

        Raises: The same as `call`.
        """
        if enabled.overruns.pods or self.refused:
            self._check_called(enabled, point)
        start = self.clock()
        own, share = self._budget(enabled, start)
        step, step_share = self._budget(enabled, start, is_step=True)
        left = self.deadline - start
        mark.memory[mark.PLUGIN] = enabled.mark
        stepwise: Stepwise[T] | None = None
        try:
            stepwise = Stepwise(function(*args), min(step * step_share, left))
            if stepwise.done:
                result = stepwise.result
            else:
                async with asyncio.timeout(min(own * share, left) - (self.clock() - start)):
                    result = await stepwise
        except BaseException as error:
            if _is_from_outside(error, stepwise):
                raise
            had = (step, step_share) if isinstance(error, BudgetExceededError) else (own, share)
            raise self._failed(enabled, point, error, start, *had) from error
        finally:
            mark.memory[mark.RUNS] = 0
            self._ended(enabled, start)
        if enabled.overruns.pods:
            enabled.overruns.succeeded(self.owner, point)
        return result

    def _check_called(self, enabled: "EnabledPlugin", point: str) -> None:
        """Refuse to call a plugin for a pod that has to wait."""
        if problem := self.refused.get(enabled.name) or enabled.overruns.refusal(self.owner):
            raise PluginFailedError(enabled.name, point, problem)

    def _ended(self, enabled: "EnabledPlugin", start: float) -> float:
        """Report a call that began at *start*; return the seconds that it took."""
        seconds = self.clock() - start
        run, kept = self.runs[-1], enabled.cycle_state
        run.seconds += seconds
        run.kept, run.note = kept.values, kept.note
        if enabled.background.works and enabled.background.is_failing:
            run.note = "; ".join(filter(None, (run.note, enabled.background.problem)))
        return seconds

    def _budget(
        self, enabled: "EnabledPlugin", now: float, *, is_step: bool = False
    ) -> tuple[float, float]:
        """Return a plugin's time budget in seconds, and which part of it there is for this pod.

        Synchronous steps get a smaller budget, and at least LEAST_STEP seconds of it.
        """
        if now >= self.deadline:
            raise TimeoutError(DEADLINE_PASSED)
        share = enabled.overruns.budget_share(self.owner) if enabled.overruns.pods else 1.0
        if is_step and enabled.by_size and self.step < enabled.time_budget:
            return self.step, max(share, min(1.0, LEAST_STEP / self.step))
        return enabled.time_budget, share

    def _failed(
        self,
        enabled: "EnabledPlugin",
        point: str,
        error: BaseException,
        start: float,
        own: float,
        share: float,
    ) -> Exception:
        # A plugin may raise a TimeoutError of its own, long before its time is up.
        seconds, left, budget = self.clock() - start, self.deadline - start, own * share
        overran = isinstance(error, BudgetExceededError) or (
            isinstance(error, TimeoutError) and seconds >= min(budget, left)
        )
        if not overran:
            return failed(enabled, point, error)
        # Where the call has less time than the budget, who took half of that is why it passed.
        if seconds >= min(budget, (self.deadline - self.runs[0].start) / 2):
            place = where(error, enabled.plugin)
            enabled.overruns.overran(self.owner, point, place, seconds)
        if left < budget:
            return TimeoutError(DEADLINE_PASSED)
        problem = overrun_of(error, enabled.plugin, own, share)
        return failed(enabled, point, error, problem)


def _is_from_outside(error: BaseException, stepwise: Stepwise[Any] | None) -> bool:
    """Whether what came out of a plugin was thrown into it: the caller is cancelled, or given up.

    A plugin may raise `CancelledError` or `GeneratorExit` of its own; that is its failure.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, GeneratorExit) and stepwise is not None and stepwise.thrown is error


def failed(
    enabled: "EnabledPlugin", point: str, error: BaseException, problem: str = ""
) -> PluginFailedError:
    """Log a failure of a plugin, and return it for the cycle."""
    problem = problem or problem_of(error, enabled.plugin)
    enabled.failures.write(enabled.plugin, point, problem, error)
    return PluginFailedError(enabled.name, point, problem)


async def ask_each(
    plugins: Iterable["EnabledPlugin"],
    ask: Callable[["EnabledPlugin"], Coroutine[Any, Any, T | None]],
    supervisor: Supervisor,
    until: Callable[[], bool] = lambda: False,
) -> list[tuple["EnabledPlugin", T]]:
    """Ask plugins one after another, each with a report: the loop of filters and of scorers.

    One that answers None does not apply to the pod. One that fails is left out.

    Args:
        plugins: The plugins, in order.
        ask: Asks one of them.
        supervisor: Has the reports.
        until: Whether the others need not be asked.

    Returns:
        The plugins with an answer, and what they answered.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    answers: list[tuple[EnabledPlugin, T]] = []
    for enabled in plugins:
        report = supervisor.begin(enabled)
        try:
            answer = await ask(enabled)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = answer is None
        if answer is not None:
            answers.append((enabled, answer))
            if until():
                break
    return answers


def joined_runs(parts: Sequence[Sequence[PluginRun]]) -> list[PluginRun]:
    """Return what plugins did on several parts of the nodes as if it had been one.

    A plugin that failed on one part has failed; it skipped if it did so on all.
    """
    most = max(parts, key=len)
    runs = {run.plugin: PluginRun(plugin=run.plugin, skipped=True) for run in most}
    for run in (run for part in parts for run in part):
        whole = runs.setdefault(run.plugin, PluginRun(plugin=run.plugin, skipped=True))
        whole.seconds += run.seconds
        whole.node_seconds += run.node_seconds
        whole.failure = whole.failure or run.failure
        whole.skipped = whole.skipped and run.skipped
        whole.note = run.note or whole.note
        whole.kept = join_kept((whole.kept, run.kept))
    return list(runs.values())


async def _prepare(plugin: Plugin, pod: Pod, nodes: Nodes) -> Preparation | None:
    answer: object = await plugin.prepare(pod, nodes)
    if answer is not None and not isinstance(answer, Preparation):
        raise WrongTypeError(plugin.prepare, answer, "Preparation or None")
    return answer
