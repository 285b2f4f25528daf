"""What is remembered of decisions, and for how long."""

from datetime import UTC, datetime

import msgspec
import pytest

from gateway.cycle.decision import BindRecord, Decision
from gateway.decisions.log import DecisionLog

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


def test_the_pods_that_were_decided_on_last_are_kept_with_their_newest_attempts() -> None:
    log = DecisionLog(pods=2, attempts=2)
    for number, pod in enumerate(("a", "b", "a", "a", "c")):
        log.add(decision(pod, error=str(number)))
    assert [attempt["error"] for attempt in shown(log, "a")] == ["3", "2"], "the newest attempts"
    assert shown(log, "b") == []
    assert log.latest("default", "a", "the uid of another pod") is None
    assert len(log) == 2


def test_decisions_take_a_bounded_amount_of_memory() -> None:
    log = DecisionLog(pods=1000, attempts=5, memory=20_000, unpacked=2)
    for number in range(300):
        log.add(decision(f"p{number}", error="x" * 1000))
        assert log.packed_bytes <= 20_000
    assert [log.attempts("default", f"p{number}") == [] for number in (0, 280)] == [True, True]
    assert len(shown(log, "p299")) == len(shown(log, "p290")) == 1
    log = DecisionLog(pods=1000, attempts=5, memory=0, unpacked=2)
    for number in range(10):
        log.add(decision(f"p{number}"))
    assert (len(log.all()), log.packed_bytes) == (2, 0)


def test_attempts_on_a_pod_are_numbered_and_linked() -> None:
    log = DecisionLog(pods=10, attempts=3, unpacked=0)
    made = [decision("p"), decision("p"), decision("p"), decision("p", uid="other")]
    log.add(made[0])
    log.add(made[1])
    log.add(made[2], again=True)
    log.add(made[3])
    assert [each.attempt for each in made] == [1, 2, 2, 1]
    assert [each.previous for each in made] == ["", made[0].id, made[1].id, ""]
    assert len({each.id for each in made}) == 4
    assert [each.id for each in log.attempts("default", "p")] == [each.id for each in made[:0:-1]]
    assert [log.number_of(each.id) for each in made] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "change", ["1", "-1", "{id}x", "{prefix}-", "{prefix}-0", "{prefix}-2", "{prefix}-01"]
)
def test_what_is_no_id_of_this_log_has_no_number(change: str) -> None:
    log, made = DecisionLog(pods=10, attempts=3), decision("p")
    log.add(made)
    prefix = made.id.partition("-")[0]
    assert log.number_of(change.format(id=made.id, prefix=prefix)) is None
    assert DecisionLog(pods=1, attempts=1).number_of(made.id) is None


def test_what_is_written_after_a_decision_was_packed_is_kept_when_it_is_packed_again() -> None:
    log = DecisionLog(pods=100, attempts=2, memory=1 << 20, unpacked=1)
    log.add(decision("a"))
    for _ in range(3):
        log.add(decision("b"))
        assert log.latest("default", "a", "u") is not None
    latest = log.latest("default", "a", "u")
    assert latest is not None
    latest.bind = BindRecord(node="n1", seconds=0.5)
    log.add(decision("c"))
    log.add(decision("d"))
    assert shown(log, "a")[0]["bind"] == {"node": "n1", "seconds": 0.5}
    kept = sum(each.packed_bytes for each in log.all())
    assert log.packed_bytes == kept
