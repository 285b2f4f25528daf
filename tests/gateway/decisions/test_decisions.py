"""What is remembered of decisions, and for how long."""

import gc
from datetime import UTC, datetime

import msgspec

from gateway.decisions.attempts.log import DecisionLog
from gateway.decisions.records import BindRecord, Decision, FilterRecord

NOW = datetime.now(UTC)


def decision(pod: str, uid: str = "u", error: str = "") -> Decision:
    return Decision(
        namespace="default",
        pod=pod,
        uid=uid,
        time=NOW,
        profile="moorage",
        error=error,
    )


def shown(log: DecisionLog, pod: str) -> list[dict[str, object]]:
    return [msgspec.to_builtins(attempt) for attempt in log.attempts("default", pod)]


def test_the_newest_attempts_of_a_pod_are_kept() -> None:
    log = DecisionLog(pods=10, attempts=2)
    for error in ("one", "two", "three"):
        log.add(decision("p", error=error))
    assert [attempt["error"] for attempt in shown(log, "p")] == ["three", "two"]


def test_the_pods_that_were_decided_on_last_are_kept() -> None:
    log = DecisionLog(pods=2, attempts=2)
    for pod in ("a", "b", "a", "c"):
        log.add(decision(pod))
    assert len(shown(log, "a")) == 2
    assert shown(log, "b") == []
    assert len(log) == 2


def test_a_bind_is_noted_though_many_decisions_came_between() -> None:
    log = DecisionLog(pods=100, attempts=2, unpacked=1)
    for pod in ("a", "b", "c"):
        log.add(decision(pod))
    latest = log.latest("default", "a", "u")
    assert latest is not None
    latest.bind = BindRecord(node="n1", seconds=0.5)
    log.add(decision("d"))
    assert shown(log, "a")[0]["bind"] == {"node": "n1", "seconds": 0.5}


def test_the_garbage_collector_does_not_look_at_decisions() -> None:
    noted = decision("p")
    noted.filter = FilterRecord(nodes=2, feasible=1, seconds=0.1, plugins=[])
    assert not any(map(gc.is_tracked, (noted, noted.filter)))


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    log = DecisionLog(pods=10, attempts=2)
    log.add(decision("p", uid="old"))
    assert log.latest("default", "p", "new") is None
