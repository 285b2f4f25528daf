"""The text of metrics: what prometheus_client says, but others get their turn meanwhile."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Enum,
    Gauge,
    Histogram,
    Info,
    Metric,
    Summary,
    disable_created_metrics,
    enable_created_metrics,
)
from prometheus_client.core import GaugeHistogramMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from prometheus_client.registry import Collector

from moorage_host.process import exposition
from moorage_host.process.exposition import Exposition
from moorage_host.process.histogram import FastHistogram

OPEN = "application/openmetrics-text"
PROMETHEUS = (
    f"{OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPEN};version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
ACCEPTED = [
    "",
    "*/*",
    "text/plain;version=1.0.0;escaping=allow-utf-8",
    "text/plain;version=1.0.0;escaping=dots",
    OPEN,
    f"{OPEN};version=1.0.0;escaping=underscores",
    f"{OPEN};version=1.0.0;escaping=values",
    PROMETHEUS,
]


class Strange(Collector):
    """What only collectors of strangers have."""

    def collect(self) -> Iterable[Metric]:
        told = GaugeMetricFamily("moorage_told", "At its own time.", labels=["by"])
        told.add_metric(["a"], 1.5, timestamp=1_700_000_000)
        told.add_metric(["b"], 2.5, timestamp=0)
        yield told
        gauges = GaugeHistogramMetricFamily("moorage_gauges", "Sizes.", labels=["by"])
        gauges.add_metric(["a"], buckets=[("1.0", 2), ("+Inf", 3)], gsum_value=7)
        gauges.add_metric(["b"], buckets=[("1.0", 0), ("+Inf", 1)], gsum_value=8)
        yield gauges


class Scene:
    """One metric of each type, that can be made to count on."""

    def __init__(self) -> None:
        self.registry = made = CollectorRegistry(auto_describe=True)
        self.calls = Counter("moorage_calls", 'Calls "in\\all"\n.', ["b", "a"], registry=made)
        self.gauge = Gauge("moorage.dotted_gauge", "Dots.", ["a.b"], registry=made)
        self.fast = FastHistogram(
            "moorage_fast_seconds", "Fast.", ["verb"], buckets=(0.1, 2, 1e9), registry=made
        )
        self.slow = Histogram("moorage_slow_seconds", "Slow.", ["verb"], registry=made)
        self.exact = Histogram("moorage_exact_seconds", "Exact.", registry=made)
        self.summary = Summary("moorage_sizes", "Sizes.", unit="bytes", registry=made)
        Info("moorage_build", "Build.", registry=made).info({"version": "1"})
        Enum("moorage_role", "Role.", states=["leader", "standby"], registry=made).state("standby")
        Counter("moorage_silent", "Never counted.", ["a"], registry=made)
        made.register(Strange())

    def go_on(self) -> None:
        """Have every metric change."""
        for label in ("plain", 'a "quoted\\" one', "two\nlines", "Größe"):
            self.calls.labels(label, "x").inc(123_456.5)
            self.gauge.labels(label).set(float("nan"))
            self.slow.labels(label).observe(0.3)
        self.fast.observer("filter")(0.3)
        self.fast.observer("score")(5)
        self.exact.observe(0.2, {"trace_id": "1"})
        self.summary.observe(3)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "PAUSE_SECONDS", 0)


@pytest.fixture(params=[0.0, 60.0], ids=["in pieces", "in one piece"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "PIECE_SECONDS", request.param)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.go_on()
    return made


@pytest.fixture
def as_in_processes() -> Iterator[None]:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    yield
    enable_created_metrics()  # type: ignore[no-untyped-call]


@pytest.mark.usefixtures("as_in_processes", "pieces")
@pytest.mark.parametrize("accept", ACCEPTED)
async def test_the_text_is_that_of_the_library_now_and_later(scene: Scene, accept: str) -> None:
    encode, content_type = choose_encoder(accept)
    told = Exposition(scene.registry)
    for _ in range(3):
        assert await told.text(accept) == (encode(scene.registry), content_type)
        scene.go_on()


async def test_each_format_has_its_own_text(scene: Scene) -> None:
    told = Exposition(scene.registry)
    for accept in (*ACCEPTED, *ACCEPTED):
        encode, content_type = choose_encoder(accept)
        assert await told.text(accept) == (encode(scene.registry), content_type)


async def test_any_number_of_formats_can_be_asked_for(scene: Scene) -> None:
    told = Exposition(scene.registry)
    for minor in range(20):
        accept = f"{OPEN};version=1.{minor}.0"
        assert await told.text(accept) == (
            choose_encoder(accept)[0](scene.registry),
            told_as(minor),
        )


def told_as(minor: int) -> str:
    return f"application/openmetrics-text; version=1.{minor}.0; charset=utf-8; escaping=underscores"


async def test_parsers_read_both_formats() -> None:
    scene = Scene()
    scene.fast.observer("filter")(0.3)
    told = Exposition(scene.registry)
    for _ in range(2):
        text, _ = await told.text("")
        found = {family.name for family in read_text(text.decode())}
        assert {"moorage_calls", "moorage_fast_seconds", "moorage_silent"} <= found
        text, _ = await told.text(PROMETHEUS)
        families = {family.name: family for family in read_openmetrics(text.decode())}  # type: ignore[no-untyped-call]
        assert families["moorage_fast_seconds"].type == "histogram"


async def test_only_the_series_that_are_wanted_are_told(scene: Scene) -> None:
    told = Exposition(scene.registry)
    wanted = ["moorage_fast_seconds_sum", "moorage_role"]
    some, _ = await told.text("", wanted)
    lines = [line for line in some.decode().splitlines() if not line.startswith("#")]
    assert [line.split("{")[0] for line in sorted(lines)] == [
        *["moorage_fast_seconds_sum"] * 2,
        *["moorage_role"] * 2,
    ]
    assert (await told.text(""))[0] == choose_encoder("")[0](scene.registry)


@pytest.mark.usefixtures("as_in_processes")
async def test_the_text_of_a_series_is_made_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def choose(accept: str) -> tuple[Callable[[Collector], bytes], str]:
        encode, content_type = choose_encoder(accept)

        def noting(collector: Collector) -> bytes:
            families = list(collector.collect())
            made.extend(s.name for family in families for s in family.samples)
            return encode(collector)

        return noting, content_type

    monkeypatch.setattr(exposition, "choose_encoder", choose)
    told = Exposition(scene.registry)
    await told.text("")
    await told.text("", ["moorage_role"])
    assert "moorage_fast_seconds_bucket" in made
    made.clear()
    scene.go_on()
    await told.text("")
    assert {name.rpartition("_")[0] for name in made} <= {
        "moorage",
        "moorage_gauges",
        "moorage_exact_seconds",
    }


async def test_series_that_are_gone_are_told_no_more(scene: Scene) -> None:
    told = Exposition(scene.registry)
    await told.text("")
    scene.calls.remove("plain", "x")
    assert (await told.text(""))[0] == choose_encoder("")[0](scene.registry)


@pytest.mark.parametrize("accept", ["", PROMETHEUS])
async def test_others_have_their_turn_between_pieces_and_see_whole_families(
    scene: Scene, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "PIECE_SECONDS", 0.0)
    observers = [scene.fast.observer(f"verb-{number}") for number in range(50)]
    turns = 0

    async def cycles() -> None:
        nonlocal turns
        while True:
            turns += 1
            for observe in observers:
                observe(0.3)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        going = group.create_task(cycles())
        text, _ = await Exposition(scene.registry).text(accept)
        going.cancel()
    samples = re.findall(r'^moorage_fast_seconds_.*verb="verb-\d+"} (\S+)$', text.decode(), re.M)
    assert len(samples) == 6 * len(observers)
    assert turns >= len(samples)
    counts = re.findall(r'^moorage_fast_seconds_count{verb="verb-\d+"} (\S+)$', text.decode(), re.M)
    assert len(set(counts)) == 1
