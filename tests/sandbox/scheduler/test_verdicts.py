from sandbox.scheduler.verdicts import NOTE_LIMIT, Refusal, Unschedulable, summary, truncated


def test_equal_reasons_are_counted_and_sorted_as_text() -> None:
    refusals = {f"n{i}": Refusal(("too hot",)) for i in range(10)}
    refusals |= {"m1": Refusal(("Insufficient cpu", "Too many pods")), "m2": Refusal(("cold",))}
    assert summary(12, refusals) == (
        "0/12 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 cold, 10 too hot."
    )


def test_nodes_without_a_reason_do_not_add_up() -> None:
    assert summary(5, {"a": Refusal(("no",))}) == "0/5 nodes are available: 1 no."
    assert summary(5, {}) == "0/5 nodes are available:"


def test_nodes_without_a_refusal_can_be_given_a_reason() -> None:
    refusals = {"a": Refusal(("no",))}
    assert summary(3, refusals, "elsewhere") == "0/3 nodes are available: 1 no, 2 elsewhere."


def test_what_preemption_said_comes_after_the_reasons() -> None:
    verdict = Unschedulable(1, {"a": Refusal(("no",))}, frozenset())
    verdict.aftermath = "preemption: in vain"
    assert str(verdict) == "0/1 nodes are available: 1 no. preemption: in vain"


def test_long_notes_are_cut() -> None:
    assert truncated("x" * NOTE_LIMIT) == "x" * NOTE_LIMIT
    cut = truncated("x" * (NOTE_LIMIT + 1))
    assert len(cut) == NOTE_LIMIT
    assert cut.endswith("x ...")
