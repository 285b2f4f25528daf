"""What may go wrong in a plugin, and what the engine hears of it."""

import asyncio
import inspect
import re
import time
from collections.abc import Callable

import pytest

from moorage import FilterPlugin, Nodes, PluginFailedError, Pod, Preparation
from moorage.execution import EnabledPlugin, Supervisor
from moorage.plugin.errors import place_of
from moorage.plugin.hooks import Plugin
from moorage.testing import make_node, make_nodes, make_pod
from tests.passing import Passes

BUDGET = 0.05
NODES = make_nodes(make_node("n1"))


class Quiet(Passes):
    """Prepares nothing."""


class Blocks(Passes):
    """Blocks in prepare."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        time.sleep(3600)  # noqa: ASYNC251 - what bad plugins do
        return None


class Waits(Passes):
    """Waits for ever in prepare."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        await asyncio.Event().wait()
        return None


class Wrong(Passes):
    """Answers with something else."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return nodes  # type: ignore[return-value]


class OwnTimeout(Passes):
    """Waits for somebody else, not long."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        raise TimeoutError("Prometheus did not answer")


def line_of(code: Callable[..., object], text: str) -> str:
    lines, first = inspect.getsourcelines(code)
    number = next(n for n, line in enumerate(lines, first) if text in line)
    return f"({place_of(__file__, number)})"


def supervise(
    plugin: FilterPlugin, deadline: float = float("inf")
) -> tuple[EnabledPlugin, Supervisor]:
    enabled = EnabledPlugin(plugin=plugin, time_budget=BUDGET)
    supervisor = Supervisor(deadline=deadline)
    supervisor.begin(enabled)
    return enabled, supervisor


def call(function: Callable[[], object], deadline: float = float("inf")) -> object:
    enabled, supervisor = supervise(Quiet(), deadline)
    return supervisor.call(enabled, "filter", function)


async def prepare(plugin: FilterPlugin, deadline: float = float("inf")) -> Preparation | None:
    enabled, supervisor = supervise(plugin, deadline)
    return await supervisor.prepare(enabled, make_pod(), NODES)


def divide() -> None:
    _ = 1 / 0


def leave() -> None:
    raise SystemExit(3)


def loop() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("function", "problem", "line"),
    [
        (divide, "ZeroDivisionError: division by zero", "1 / 0"),
        (leave, "SystemExit: 3", "raise SystemExit"),
        (loop, "it took longer than its time budget of 0.05 s", ""),
    ],
)
def test_a_failure_names_the_plugin_the_point_and_the_line(
    function: Callable[[], None], problem: str, line: str
) -> None:
    with pytest.raises(PluginFailedError) as failure:
        call(function)
    place = place_of(__file__, None)
    assert str(failure.value).startswith(f"plugin Quiet failed in filter: {problem} ({place}:")
    assert failure.value.problem.startswith(problem)
    if line:
        assert failure.value.problem.endswith(line_of(function, line))


async def test_a_plugin_without_prepare_is_not_asked() -> None:
    assert await prepare(Quiet()) is None


@pytest.mark.parametrize(
    ("plugin", "problem", "line"),
    [
        (Blocks(), "it took longer than its time budget of 0.05 s", "time.sleep"),
        (Waits(), "it took longer than its time budget of 0.05 s", "asyncio.Event"),
        (Wrong(), "prepare must return Preparation or None, not Nodes", "async def prepare"),
        (OwnTimeout(), "TimeoutError: Prometheus did not answer", "raise TimeoutError"),
    ],
    ids=["blocks", "waits", "wrong type", "own timeout"],
)
async def test_a_failing_prepare_is_reported_with_its_line(
    plugin: FilterPlugin, problem: str, line: str
) -> None:
    with pytest.raises(PluginFailedError) as failure:
        await prepare(plugin)
    assert failure.value.point == "prepare"
    assert failure.value.problem == f"{problem} {line_of(type(plugin).prepare, line)}"


@pytest.mark.parametrize("plugin", [Blocks(), Waits()], ids=["blocks", "waits"])
async def test_the_end_of_the_cycle_is_not_the_plugins_fault(plugin: FilterPlugin) -> None:
    soon = time.perf_counter() + BUDGET / 2
    with pytest.raises(TimeoutError, match="the cycle's deadline passed"):
        await prepare(plugin, soon)
    with pytest.raises(TimeoutError, match="the cycle's deadline passed"):
        call(loop, time.perf_counter() + BUDGET / 2)


class WaitsAWhile(Passes):
    """Waits for somebody else, longer than a step may take."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        await asyncio.sleep(2 * BUDGET)
        return None


async def test_the_default_budget_is_less_in_a_small_cluster_but_not_for_waits() -> None:
    enabled, supervisor = EnabledPlugin(plugin=Quiet(), by_size=True), Supervisor(step=BUDGET)
    supervisor.begin(enabled)
    with pytest.raises(PluginFailedError, match=r"than its time budget of 0\.05 s \("):
        supervisor.call(enabled, "filter", loop)
    for plugin in (WaitsAWhile(), Blocks()):
        enabled, supervisor = EnabledPlugin(plugin=plugin, by_size=True), Supervisor(step=BUDGET)
        supervisor.begin(enabled)
        prepared = supervisor.prepare(enabled, make_pod(), NODES)
        if isinstance(plugin, WaitsAWhile):
            assert await prepared is None
        else:
            with pytest.raises(PluginFailedError, match=r"than its time budget of 0\.05 s \("):
                await prepared


async def test_a_namespace_that_owes_time_keeps_long_enough_steps() -> None:
    def nap() -> None:
        time.sleep(0.15)

    class Naps(Passes):
        """Takes more than a quarter of a step."""

        async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
            nap()
            return None

    enabled = EnabledPlugin(plugin=Naps(), by_size=True)
    enabled.overruns.overran(("a", "b"), "filter", "", 0.5)
    supervisor = Supervisor(owner=("a", "other"), step=0.5)
    supervisor.begin(enabled)
    supervisor.call(enabled, "filter", nap)
    await supervisor.prepare(enabled, make_pod(), NODES)
    with pytest.raises(PluginFailedError, match=r"budget of 0\.5 s, of which .* leave 40%"):
        supervisor.call(enabled, "filter", loop)


def test_after_the_deadline_no_plugin_runs() -> None:
    ran: list[int] = []
    with pytest.raises(TimeoutError, match="the cycle's deadline passed"):
        call(lambda: ran.append(1), deadline=time.perf_counter())
    assert not ran


async def test_cancelling_a_cycle_is_no_failure() -> None:
    task = asyncio.ensure_future(prepare(Waits()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_pod_that_overran_fails_at_once_and_other_failures_do_not_count() -> None:
    enabled, supervisor = supervise(Quiet())
    for _ in range(3):
        with pytest.raises(PluginFailedError, match="ZeroDivisionError"):
            supervisor.call(enabled, "filter", divide)
    with pytest.raises(PluginFailedError, match="longer than its time budget"):
        supervisor.call(enabled, "filter", loop)
    with pytest.raises(PluginFailedError) as failure:
        supervisor.call(enabled, "filter", lambda: None)
    assert re.fullmatch(
        r"not called for this pod for 1 s: 1 overrun, the last in filter \(.*\.py:\d+\)",
        failure.value.problem,
    )
    supervise_for(("a", "other"), enabled).call(enabled, "filter", lambda: None)


def test_who_takes_most_of_a_call_shorter_than_the_budget_overran() -> None:
    enabled = EnabledPlugin(plugin=Quiet(), time_budget=60)
    supervisor = supervise_for(("a", "b"), enabled, seconds=BUDGET)
    with pytest.raises(TimeoutError):
        supervisor.call(enabled, "filter", loop)
    with pytest.raises(PluginFailedError, match="not called for this pod"):
        supervise_for(("a", "b"), enabled).call(enabled, "filter", loop)


def supervise_for(
    owner: tuple[str, str], enabled: EnabledPlugin, seconds: float = float("inf")
) -> Supervisor:
    supervisor = Supervisor(owner=owner, deadline=time.perf_counter() + seconds)
    supervisor.begin(enabled)
    return supervisor


def test_a_report_adds_up_the_time_of_all_points() -> None:
    ticks = iter(range(100))
    enabled = EnabledPlugin(plugin=Quiet(), time_budget=50)
    supervisor = Supervisor(clock=lambda: float(next(ticks)))
    report = supervisor.begin(enabled)
    supervisor.call(enabled, "filter", lambda: None)
    supervisor.call(enabled, "normalize", lambda: None)
    assert (report.plugin, report.seconds) == ("Quiet", 2.0)


def note_in(plugin: Plugin, text: str) -> Callable[[], None]:
    return lambda: plugin.note(text)


class Notes(Passes):
    """Notes something in prepare."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.note("prepared")
        return None


async def test_a_note_lands_in_the_report_wherever_it_was_left() -> None:
    enabled, supervisor = supervise(Notes())
    (report,) = supervisor.runs
    assert report.note == ""
    await supervisor.prepare(enabled, make_pod(), NODES)
    supervisor.call(enabled, "filter", lambda: None)
    assert report.note == "prepared"
    assert enabled.plugin.latest_note == "prepared"
    supervisor.call(enabled, "reserve", note_in(enabled.plugin, "reserved"))
    assert report.note == "reserved"


@pytest.mark.parametrize("failing", [divide, loop])
def test_a_failure_keeps_the_note(failing: Callable[[], None]) -> None:
    def fail() -> None:
        enabled.plugin.note("before it failed")
        failing()

    enabled, supervisor = supervise(Quiet())
    with pytest.raises(PluginFailedError):
        supervisor.call(enabled, "filter", fail)
    assert supervisor.runs[-1].note == "before it failed"


def test_a_note_from_between_two_cycles_belongs_to_none() -> None:
    enabled, supervisor = supervise(Quiet())
    enabled.plugin.note("from background work")
    supervisor.begin(enabled)
    supervisor.call(enabled, "filter", lambda: None)
    assert [report.note for report in supervisor.runs] == ["", ""]
