from sandbox.scheduler.cycle.attempt import Attempt, Rejection, summary
from sandbox.scheduler.outcomes import NOTE_LIMIT, truncated
from tests.sandbox.scheduler.support import known_pod


def rejection(*reasons: str) -> Rejection:
    return Rejection("Some", reasons)


def test_equal_reasons_are_counted_and_sorted_as_text() -> None:
    rejections = {f"n{i}": rejection("too hot") for i in range(10)}
    rejections |= {"m1": rejection("Insufficient cpu", "Too many pods"), "m2": rejection("cold")}
    assert summary(12, rejections) == (
        "0/12 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 cold, 10 too hot."
    )


def test_nodes_without_a_reason_do_not_add_up() -> None:
    assert summary(5, {"a": rejection("no")}) == "0/5 nodes are available: 1 no."
    assert summary(5, {}) == "0/5 nodes are available:"


def test_nodes_that_were_not_evaluated_can_have_a_reason() -> None:
    attempt = Attempt(
        pod=known_pod(), nodes=3, rejections={"a": rejection("no")}, elsewhere="elsewhere"
    )
    assert attempt.message == "0/3 nodes are available: 1 no, 2 elsewhere."


def test_the_outcome_of_preemption_comes_after_the_reasons() -> None:
    aftermath = "preemption: in vain"
    rejections = {"a": rejection("no")}
    attempt = Attempt(pod=known_pod(), nodes=1, rejections=rejections, aftermath=aftermath)
    assert attempt.message == "0/1 nodes are available: 1 no. preemption: in vain"


def test_a_conflict_is_the_only_reason() -> None:
    attempt = Attempt(
        pod=known_pod(),
        nodes=2,
        conflict="pod affinity terms conflict",
        aftermath="preemption: no",
    )
    assert attempt.message == (
        "0/2 nodes are available: pod affinity terms conflict. preemption: no"
    )


def test_long_notes_are_cut() -> None:
    assert truncated("x" * NOTE_LIMIT) == "x" * NOTE_LIMIT
    cut = truncated("x" * (NOTE_LIMIT + 1))
    assert len(cut) == NOTE_LIMIT
    assert cut.endswith("x ...")
