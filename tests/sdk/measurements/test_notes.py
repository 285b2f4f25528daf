"""What plugins that measure nodes note about missing and old measurements."""

import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage import Arguments, Nodes, Pod, ScorePlugin, Scores
from moorage.measurements import (
    Measure,
    MeasuringPlugin,
    NoMeasurementsError,
    PrometheusSettings,
    PrometheusSource,
    mark_missing,
)
from moorage.measurements.load import LoadArguments, LoadMeter, LoadScorePlugin
from moorage.models import NodeManifest
from moorage.testing import make_node, make_nodes, make_pod, time_is
from moorage_host.policy.checks import check_arguments
from tests.annotated import loaded_node
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tools.waiting import until

NODES = [make_node(name) for name in ("a", "b", "c")]


class Disks(MeasuringPlugin, ScorePlugin):
    """A plugin of one's own, such as that in docs/how-to/plugins/measurements.md."""

    class Args(Arguments):
        prometheus: PrometheusSettings

    source: PrometheusSource

    def __init__(self, args: Arguments | None = None) -> None:
        super().__init__(args)
        measures = {"busy": Measure(series="node_disk_io_time_seconds_total")}
        self.source = PrometheusSource("disks", self.args.prometheus, measures)

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        busy = self.source.values(nodes, "busy")
        self.note_missing(nodes, busy, "worst")
        return mark_missing(busy, "worst")


class Idle(LoadScorePlugin):
    """Reads the load."""

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        return 100 * (1 - self.source.load(nodes, "cpu").mean_with(0))


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        yield fake


@asynccontextmanager
async def disks(fake: FakePrometheus, **settings: Any) -> AsyncIterator[Disks]:
    usual = {"interval": "1h", "max_age": "1h", **settings}
    plugin = Disks(Disks.Args(prometheus=fake.settings(**usual)))
    await plugin.start()
    try:
        yield plugin
    finally:
        await plugin.stop()


def note_of(plugin: ScorePlugin, *nodes: NodeManifest) -> str:
    """Run a cycle in this thread, so that no answer comes amid it."""
    plugin.note("")
    with suppress(NoMeasurementsError):
        plugin.score(make_pod(), make_nodes(*(nodes or NODES)))
    return plugin.latest_note


async def test_an_old_answer_is_noted_with_its_age_and_why_there_is_no_newer_one(
    prometheus: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However recent it is; and on a busy machine no answer is recent for long.
    monkeypatch.setattr("moorage.measurements.prometheus.source.OVERDUE", math.inf)
    prometheus.measures({"busy": {"a": 1, "b": 2, "c": 3}})
    async with disks(prometheus, interval="50ms") as plugin:
        assert note_of(plugin) == ""
        prometheus.status = 500
        await until(lambda: "HTTP status 500" in note_of(plugin))
        assert re.match(r"Prometheus last answered \d+s ago: ", note_of(plugin))
        prometheus.status = 200
        await until(lambda: note_of(plugin) == "")


async def test_an_answer_that_is_overdue_is_noted(prometheus: FakePrometheus) -> None:
    prometheus.measures({"busy": {"a": 1, "b": 2, "c": 3}})
    async with disks(prometheus, interval="10ms") as plugin:
        prometheus.stuck = True
        overdue = re.compile(r"Prometheus last answered \d+s ago")
        await until(lambda: overdue.fullmatch(note_of(plugin)) is not None)


async def test_an_answer_that_counts_no_more_is_noted(prometheus: FakePrometheus) -> None:
    prometheus.measures({"busy": {"a": 1, "b": 2, "c": 3}})
    async with disks(prometheus, interval="10ms", max_age="20ms") as plugin:
        prometheus.status = 500
        await until(lambda: not plugin.source.is_fresh and "500" in plugin.source.problem)
        note = note_of(plugin)
    assert re.match(
        r"3 of 3 nodes have no measurements \(onMissing: worst\); "
        r"Prometheus last answered \d+s ago: ",
        note,
    )


async def test_a_prometheus_that_never_answered_is_noted(prometheus: FakePrometheus) -> None:
    prometheus.status = 500
    async with disks(prometheus) as plugin:
        note = note_of(plugin)
        assert note.startswith("3 of 3 nodes have no measurements (onMissing: worst); ")
        assert "HTTP status 500" in note
    assert "the plugin has not been started" in note_of(plugin)


async def test_an_answer_about_other_nodes_is_noted(prometheus: FakePrometheus) -> None:
    prometheus.measures({"busy": {"a.example.com": 1, "b.example.com": 2}})
    async with disks(prometheus) as plugin:
        assert note_of(plugin) == (
            "3 of 3 nodes have no measurements (onMissing: worst); "
            "Prometheus knows other nodes, such as a.example.com, and not a"
        )


def measured(name: str, minutes: float | None, prefix: str = "") -> NodeManifest:
    """Make a node that was measured so long ago, at a time that is not known if None."""
    stamps = {}
    if minutes is not None:
        moment = datetime.now(UTC) - timedelta(minutes=minutes)
        stamps = {f"{prefix}load_measured_at": moment.isoformat()}
    return loaded_node(name, free_cpu=1000, prefix=prefix, **stamps)


def in_minutes(note: str) -> str:
    return re.sub(r"(\dm)\d+s", r"\1", note)


@pytest.mark.parametrize(
    ("minutes", "note"),
    [
        ([1, 7], ""),
        ([1, None], ""),
        ([8, 9, None], "the newest load-measured-at is 8m ago"),
        ([0, 20], "load-measured-at of 1 is over 15m ago, the newest 0s ago"),
        ([3, 16, 17], "load-measured-at of 2 is over 15m ago, the newest 3m ago"),
        ([None, 17], "load-measured-at of 1 is over 15m ago, the newest 17m ago"),
    ],
)
def test_old_annotations_are_noted(minutes: list[float | None], note: str) -> None:
    nodes = [measured(f"n{i}", ago) for i, ago in enumerate(minutes)]
    found = in_minutes(note_of(Idle(), *nodes))
    assert found.endswith(note)
    old = sum(ago is not None and ago > 15 for ago in minutes)
    missing = f"{old} of {len(nodes)} nodes have no measurements, such as n1 (onMissing: neutral); "
    assert found.removesuffix(note) == (missing if old else "")


NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
UNREADABLE = "load-measured-at of 1 is no time in RFC 3339, such as {!r} on node"
FUTURE = "load-measured-at of 1 is in the future, such as {!r} on node"
OLD = "load-measured-at of 1 is over 15m ago, the newest 1h ago"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("2026-11-28T12:00:00Z", ""),
        ("2026-11-28t11:59:00z", ""),
        ("2026-11-28 11:59:00Z", ""),
        ("2026-11-28T11:59:00.123456789Z", ""),
        ("2026-11-28T13:59:00+02:00", ""),
        ("2026-11-28T13:59:00+0200", ""),
        ("2026-11-28T11:59:00", ""),
        ("2026-11-28T12:00:09Z", ""),
        ("2026-11-28T12:00:11Z", FUTURE),
        ("2099-01-01T00:00:00Z", FUTURE),
        ("2026-11-28T14:01:00+01:00", FUTURE),
        ("2026-11-28T11:00:00Z", OLD),
        ("1767225600", UNREADABLE),
        ("1767225600000", UNREADABLE),
        ("20261128", UNREADABLE),
        ("20261128T115900Z", UNREADABLE),
        ("2026-11-28", UNREADABLE),
        ("2026-W48-6", UNREADABLE),
        ("2026-02-30T00:00:00Z", UNREADABLE),
        ("Sat, 28 Nov 2026 11:59:00 GMT", UNREADABLE),
        ("Sat Nov 28 11:59:00 UTC 2026", UNREADABLE),
        ("11:59:00", UNREADABLE),
        ("\u0662026-11-28T11:59:00Z", UNREADABLE),
        ("garbage", UNREADABLE),
        ("", UNREADABLE),
    ],
)
def test_a_time_counts_if_it_can_be_read_and_has_come(text: str, note: str) -> None:
    node = loaded_node(free_cpu=1000, load_measured_at=text)
    with time_is(NOW):
        found = note_of(Idle(), node)
        used = LoadMeter(LoadArguments()).load(make_nodes(node), "cpu").used
    assert found.rpartition("; ")[2] == note.format(text)
    assert math.isnan(used[0]) == bool(note)


def test_notes_name_annotations_with_their_prefix() -> None:
    plugin = Idle(check_arguments({"annotationPrefix": "x/"}, Idle.Args, "args"))
    assert "annotations x/mean-free-* count" in note_of(plugin, make_node("a"))
    note = in_minutes(note_of(plugin, measured("a", 20, prefix="x/")))
    assert note.endswith("; x/load-measured-at of 1 is over 15m ago, the newest 20m ago")


async def test_load_from_prometheus_is_noted_likewise(prometheus: FakePrometheus) -> None:
    prometheus.measures({"cpu": {"a": 0.5}})
    settings = prometheus.settings(interval="1h", max_age="1h")
    plugin = Idle(Idle.Args(prometheus=settings, on_missing="fail"))
    await plugin.start()
    note = note_of(plugin)
    await plugin.stop()
    assert note == "2 of 3 nodes have no measurements, such as b (onMissing: fail)"


async def test_a_measure_that_no_node_has_is_noted(prometheus: FakePrometheus) -> None:
    prometheus.measures({"memory": {"a": 0.5, "b": 0.5, "c": 0.5}})
    settings = prometheus.settings(interval="1h", max_age="1h")
    plugin = Idle(Idle.Args(prometheus=settings))
    await plugin.start()
    note = note_of(plugin)
    await plugin.stop()
    assert note == (
        "3 of 3 nodes have no measurements (onMissing: neutral); "
        "Prometheus knows a, but not all that was asked about it"
    )
