from sandbox.scheduler.cycle.diagnosis import Diagnosis, Rejection, summary
from sandbox.scheduler.outcomes import NOTE_LIMIT, truncated


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
    diagnosis = Diagnosis(3, {"a": rejection("no")}, elsewhere="elsewhere")
    assert str(diagnosis) == "0/3 nodes are available: 1 no, 2 elsewhere."


def test_the_outcome_of_preemption_comes_after_the_reasons() -> None:
    diagnosis = Diagnosis(1, {"a": rejection("no")}, aftermath="preemption: in vain")
    assert str(diagnosis) == "0/1 nodes are available: 1 no. preemption: in vain"


def test_a_conflict_is_the_only_reason() -> None:
    diagnosis = Diagnosis(2, conflict="pod affinity terms conflict", aftermath="preemption: no")
    assert str(diagnosis) == (
        "0/2 nodes are available: pod affinity terms conflict. preemption: no"
    )


def test_long_notes_are_cut() -> None:
    assert truncated("x" * NOTE_LIMIT) == "x" * NOTE_LIMIT
    cut = truncated("x" * (NOTE_LIMIT + 1))
    assert len(cut) == NOTE_LIMIT
    assert cut.endswith("x ...")
