"""The log of a failing plugin: the traceback of its own code, and not too often."""

import asyncio

import pytest

from moorage import FilterPlugin, Node, PluginFailedError, Pod, Rejection
from moorage.execution import EnabledPlugin, Supervisor, ask_for_verdicts
from moorage.execution.failure import QUIET_SECONDS, FailureLog
from moorage.testing import make_node, make_nodes, make_pod


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
