"""Pauses of the garbage collector."""

import gc
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from moorage_host.process.metrics import BOUNDS, GarbagePauses


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    made = CollectorRegistry()
    pauses = GarbagePauses(made)
    yield made
    pauses.stop()


def sample(registry: CollectorRegistry, suffix: str, generation: int, **more: str) -> float:
    name, labels = f"moorage_gc_pause_seconds_{suffix}", {"generation": str(generation), **more}
    return registry.get_sample_value(name, labels) or 0.0


def test_each_collection_is_a_pause_of_its_generation(registry: CollectorRegistry) -> None:
    gc.disable()
    try:
        before = [sample(registry, "count", generation) for generation in range(3)]
        gc.collect(0)
        gc.collect(2)
        gc.collect(2)
        counts = [sample(registry, "count", generation) for generation in range(3)]
    finally:
        gc.enable()
    assert [now - then for now, then in zip(counts, before, strict=True)] == [1, 0, 2]
    assert sample(registry, "sum", 2) > 0


def test_buckets_add_up(registry: CollectorRegistry) -> None:
    for _ in range(3):
        gc.collect()
    bounds = [*map(str, BOUNDS), "+Inf"]
    counts = [sample(registry, "bucket", 2, le=bound) for bound in bounds]
    assert counts == sorted(counts)
    assert counts[-1] == sample(registry, "count", 2) >= 3


def test_a_collection_in_the_middle_of_a_scrape_does_no_harm(registry: CollectorRegistry) -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert b"moorage_gc_pause_seconds_bucket" in generate_latest(registry)
    finally:
        gc.set_threshold(*threshold)


def test_nothing_is_counted_after_the_end() -> None:
    made = CollectorRegistry()
    GarbagePauses(made).stop()
    gc.collect()
    assert sample(made, "count", 2) == 0
