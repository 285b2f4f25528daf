"""What may go wrong in a plugin, and what the engine hears of it."""

import asyncio
import inspect
import time
from collections.abc import Callable

import pytest

from moorage import FilterPlugin, Node, Nodes, PluginFailedError, Pod, Preparation, Rejection
from moorage.execution import EnabledPlugin, Supervisor, ask_for_verdicts
from moorage.execution.failure import QUIET_SECONDS, FailureLog
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


def loop() -> None:
    while True:
        pass


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


class Fails(FilterPlugin):
    """Fails at one of two lines."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if "other" in pod.labels:
            raise ValueError("other")
        return self._lookup(node)

    def _lookup(self, node: Node) -> Rejection | None:
        return Rejection(node.labels["zone"])


def fail(enabled: EnabledPlugin, **labels: str) -> None:
    supervisor = Supervisor()
    supervisor.begin(enabled)
    asking = ask_for_verdicts(
        enabled, make_pod(labels=labels), make_nodes(make_node("n")), supervisor
    )
    with pytest.raises(PluginFailedError):
        asyncio.run(asking)


def test_the_log_has_the_plugins_own_traceback_under_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fail(EnabledPlugin(plugin=Fails()))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("Fails", "WARNING")
    assert record.getMessage().startswith("filter_node failed: KeyError: 'zone' for node n (tests/")
    lines = [line.strip() for line in caplog.text.splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    assert [line.rpartition(" in ")[2] for line in files] == ["filter_node", "_lookup"]
    assert lines[-1] == "KeyError: 'zone'"


def test_the_traceback_ends_with_the_plugins_code(caplog: pytest.LogCaptureFixture) -> None:
    class Writes(FilterPlugin):
        def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
            return self._dive(pod, 99)

        def _dive(self, pod: Pod, depth: int) -> Rejection | None:
            if depth:
                return self._dive(pod, depth - 1)
            pod.labels["seen"] = "yes"  # type: ignore[index]
            return None

    fail(EnabledPlugin(plugin=Writes()))
    traceback = caplog.text.partition("Traceback")[2]
    *_, last = (line for line in traceback.splitlines() if "File " in line)
    assert last.endswith("in _dive")
    assert len(traceback.splitlines()) < 70


def test_failures_at_the_same_line_are_counted_and_others_logged_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    enabled = EnabledPlugin(plugin=Fails(), failures=FailureLog(clock=lambda: now[0]))
    for _ in range(50):
        fail(enabled)
    fail(enabled, other="yes")
    assert len(caplog.records) == 2
    now[0] = QUIET_SECONDS
    fail(enabled)
    assert len(caplog.records) == 3
    assert caplog.records[-1].getMessage().endswith(" (49 times more since it was logged)")
