from hypothesis import given
from hypothesis import strategies as st

from moorage.execution.overruns import (
    FREE_SECONDS,
    LESS,
    LONGEST_WAIT,
    MOST_NAMESPACES,
    MOST_PODS,
    MOST_SECONDS,
    NAMESPACES,
    SHARE,
    SUSPENSION_SECONDS,
    Overruns,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


POISON, INNOCENT, OTHER = ("tenant", "poison"), ("tenant", "innocent"), ("other", "innocent")


def made() -> tuple[Overruns, Clock]:
    clock = Clock()
    return Overruns(clock=clock), clock


def overrun(overruns: Overruns, *owner: str, seconds: float = 0.01) -> None:
    overruns.overran((owner[0], owner[1]), "filter", " (a.py:1)", seconds)


def test_a_pod_is_refused_for_a_time_that_doubles_and_nobody_else_is() -> None:
    overruns, clock = made()
    for wait in (1, 2, 4, 8):
        overrun(overruns, *POISON)
        assert f"for {wait} s" in overruns.refusal(POISON)
        assert not overruns.refusal(INNOCENT)
        assert not overruns.refusal(OTHER)
        clock.now += wait - 0.01
        assert overruns.refusal(POISON)
        clock.now += 0.01
        assert not overruns.refusal(POISON)


def test_a_call_in_time_ends_the_count_of_its_pod_but_only_at_the_same_point() -> None:
    overruns, _ = made()
    overrun(overruns, *POISON)
    overruns.succeeded(POISON, "prepare")
    overruns.succeeded(INNOCENT, "filter")
    assert overruns.refusal(POISON)
    overruns.succeeded(POISON, "filter")
    assert not overruns.refusal(POISON)
    assert not overruns.pods


def test_overruns_of_several_namespaces_suspend_it_for_all_unless_a_call_went_well() -> None:
    overruns, clock = made()
    for number in range(NAMESPACES - 1):
        overrun(overruns, f"n{number}", "p")
    overruns.succeeded(OTHER, "filter")
    overrun(overruns, "n9", "p")
    assert not overruns.refusal(OTHER)
    for number in range(NAMESPACES - 1):
        overrun(overruns, f"n{number}", "p")
    assert overruns.refusal(OTHER).startswith("suspended for 30 s")
    clock.now += SUSPENSION_SECONDS
    assert not overruns.refusal(OTHER)
    overrun(overruns, "n1", "p")
    assert not overruns.refusal(OTHER), "one namespace has gone on with it"


def test_a_namespace_with_many_overruns_gets_a_small_share_for_them() -> None:
    overruns, clock = made()
    number, spent = 0, 0.0
    for _ in range(3600):
        if not overruns.refusal(("tenant", f"p{number}")):
            overrun(overruns, "tenant", f"p{number}", seconds=1.0)
            number, spent = number + 1, spent + 1.0
        clock.now += 1.0
    assert spent <= MOST_SECONDS + 1 + 3600 * SHARE * 1.1
    assert not overruns.refusal(OTHER)


def test_pods_that_overran_keep_to_the_share_of_their_namespace_sooner_than_others() -> None:
    overruns, clock = made()
    for name in "abc":
        overrun(overruns, "tenant", name, seconds=1.0)
    clock.now += 2.0
    assert "this namespace" in overruns.refusal(("tenant", "a"))
    assert not overruns.refusal(INNOCENT)
    clock.now += (3.0 - FREE_SECONDS) / SHARE
    assert not overruns.refusal(("tenant", "a"))


def test_nobody_waits_for_longer_than_the_longest_wait() -> None:
    overruns, clock = made()
    for _ in range(20):
        overrun(overruns, *POISON, seconds=30.0)
    clock.now += LONGEST_WAIT
    assert not overruns.refusal(INNOCENT)


def test_everything_that_is_kept_has_a_bound_and_is_forgotten() -> None:
    overruns, clock = made()
    for number in range(3 * MOST_PODS):
        overrun(overruns, f"n{number}", "p", seconds=1.0)
        overruns.succeeded(("x", "y"), "filter")
    assert len(overruns.pods) == MOST_PODS
    assert len(overruns._debts) == MOST_NAMESPACES
    clock.now += 1000.0
    assert not overruns.refusal(OTHER)
    assert not overruns.pods
    assert not overruns._debts


def test_pods_of_a_namespace_that_owes_time_have_a_smaller_budget() -> None:
    overruns, clock = made()
    overrun(overruns, *POISON, seconds=1.0)
    assert overruns.budget_share(POISON) == overruns.budget_share(INNOCENT) == LESS
    assert overruns.budget_share(OTHER) == 1
    clock.now += 1.0 / SHARE
    assert overruns.budget_share(INNOCENT) == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("overran", "succeeded", "time")),
            st.sampled_from(("a", "b", "c")),
            st.floats(0.01, 100),
        ),
        max_size=60,
    )
)
def test_nothing_that_pods_of_one_namespace_do_keeps_a_plugin_from_another_s(
    steps: list[tuple[str, str, float]],
) -> None:
    overruns, clock = made()
    for what, name, seconds in steps:
        if what == "overran":
            overruns.overran(("tenant", name), "filter", "", seconds)
        elif what == "succeeded":
            overruns.succeeded(("tenant", name), "filter")
        else:
            clock.now += seconds
        assert not overruns.refusal(OTHER)
        assert overruns.budget_share(OTHER) == 1
    clock.now += 1e6
    overruns.refusal(OTHER)
    assert not overruns.pods
