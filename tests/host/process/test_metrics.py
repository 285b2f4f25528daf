import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

import moorage
from moorage_host.process.metrics import MetricRow, children, metrics_table, show_build


def test_the_table_names_labels_even_of_metrics_without_values() -> None:
    registry = CollectorRegistry()
    Counter("moorage_binds", "Binds.", ("code",), registry=registry)
    Histogram("moorage_cycle_seconds", "Cycles.", ("verb", "result"), registry=registry)
    Gauge("moorage_age_seconds", "Age.", registry=registry)
    assert metrics_table(registry) == [
        MetricRow(name="moorage_age_seconds", type="gauge", labels=(), help="Age."),
        MetricRow(name="moorage_binds_total", type="counter", labels=("code",), help="Binds."),
        MetricRow(
            name="moorage_cycle_seconds",
            type="histogram",
            labels=("verb", "result"),
            help="Cycles.",
        ),
    ]


def test_the_table_of_a_process_names_what_all_processes_have() -> None:
    names = {row.name for row in metrics_table()}
    assert {
        "grpc_server_handled_total",
        "moorage_build_info",
        "process_resident_memory_bytes",
    } <= names
    assert not any(name.startswith("scheduler_") for name in names)


def test_children_are_the_ones_that_labels_gives() -> None:
    registry = CollectorRegistry()
    counter = Counter("moorage_binds", "Binds.", ("node", "code"), registry=registry)
    child = children(counter)
    child("a", "b").inc()
    counter.labels("a", "b").inc()
    assert child("a", "b") is child("a", "b")
    assert registry.get_sample_value("moorage_binds_total", {"node": "a", "code": "b"}) == 2


def test_a_process_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_REVISION", "3f2a")
    show_build("tiny")
    [build] = [f for f in REGISTRY.collect() if f.name == "moorage_build_info"]
    [labels] = [s.labels for s in build.samples if s.labels["service"] == "tiny"]
    assert all(labels[name] for name in ("version", "python", "grpc"))
    assert labels["version"] == moorage.__version__
    assert labels["revision"] == "3f2a"
