"""Metrics of processes: names, histograms of hot paths, pauses of the garbage collector."""

import gc
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

import moorage
from moorage_host.process.histogram import FastHistogram
from moorage_host.process.metrics import show_build


def test_a_process_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_REVISION", "3f2a")
    show_build("tiny")
    [build] = [f for f in REGISTRY.collect() if f.name == "moorage_build_info"]
    [labels] = [s.labels for s in build.samples if s.labels["service"] == "tiny"]
    assert all(labels[name] for name in ("version", "python", "grpc"))
    assert labels["version"] == moorage.__version__
    assert labels["revision"] == "3f2a"


BUCKETS = (0.001, 0.25, 1, 2.5, 64)
VALUES = st.lists(st.floats(0, 100) | st.sampled_from(BUCKETS), max_size=30)


def exposed(registry: CollectorRegistry) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


@given(some=VALUES, others=VALUES)
def test_a_histogram_is_exposed_as_that_of_the_library(
    some: list[float], others: list[float]
) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    fast = FastHistogram("seconds", "Time.", ["phase"], buckets=BUCKETS, registry=ours)
    slow = Histogram("seconds", "Time.", ["phase"], buckets=BUCKETS, registry=theirs)
    for phase, values in (("filter", some), ("score", others)):
        observe, child = fast.observer(phase), slow.labels(phase)
        for value in values:
            observe(value)
            child.observe(value)
    assert exposed(ours) == exposed(theirs)


def test_a_bucket_has_the_newest_example_of_its_values() -> None:
    registry = CollectorRegistry()
    observe = FastHistogram("seconds", "Time.", buckets=(1, 2), registry=registry).observer()
    for value, decision in ((0.5, ""), (1.5, "a"), (1.7, "b"), (9, "c"), (1.6, "")):
        observe(value, {"decision": decision} if decision else {})
    text: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]
    examples = re.findall(r'le="(\S+)"} \S+(?: # {decision="(.)"} (\S+))?', text.decode())
    assert examples == [("1.0", "", ""), ("2.0", "b", "1.7"), ("+Inf", "c", "9.0")]
    assert "decision" not in generate_latest(registry).decode()


def sample(suffix: str, generation: int, **more: str) -> float:
    name, labels = f"moorage_gc_pause_seconds_{suffix}", {"generation": str(generation), **more}
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_each_collection_is_a_pause_of_its_generation() -> None:
    gc.disable()
    try:
        before = [sample("count", generation) for generation in range(3)]
        gc.collect(0)
        gc.collect(2)
        gc.collect(2)
        counts = [sample("count", generation) for generation in range(3)]
    finally:
        gc.enable()
    assert [now - then for now, then in zip(counts, before, strict=True)] == [1, 0, 2]
    assert sample("sum", 2) > 0


def test_a_collection_in_the_middle_of_a_scrape_does_no_harm() -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert b"moorage_gc_pause_seconds_bucket" in generate_latest(REGISTRY)
    finally:
        gc.set_threshold(*threshold)
