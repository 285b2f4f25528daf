"""What plugins did over time, by their own metrics."""

from prometheus_client import CollectorRegistry

from gateway.cycle.decision import BindPluginRecord
from gateway.inspector.timeline import Timeline
from gateway.replicas.metrics import ReplicaMetrics


def test_binds_are_a_phase_beside_filter_and_score() -> None:
    registry = CollectorRegistry()
    metrics = ReplicaMetrics(registry)
    timeline = Timeline(registry, interval=1, clock=lambda: 10.0)
    for result in ("ok", "failed"):
        ran = BindPluginRecord(plugin="GangPermit", point="permit", result=result, seconds=0.25)
        metrics.bound([ran])
    timeline.note()
    series = timeline.since(0)["series"]
    (bound,) = (each for each in series if each["plugin"])
    assert (bound["plugin"], bound["phase"]) == ("GangPermit", "bind")
    assert (bound["cycles"], bound["mean"], bound["failures"]) == ([2], [0.25], [1])
