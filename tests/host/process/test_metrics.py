import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter

import moorage
from moorage_host.process.metrics import children, show_build


def test_every_process_has_the_metrics_of_calls_build_and_memory() -> None:
    names = {family.name for family in REGISTRY.collect()}
    wanted = {"grpc_server_handled", "moorage_build_info", "process_resident_memory_bytes"}
    assert wanted <= names
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
