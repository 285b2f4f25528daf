import pytest

from moorage.execution.enabled import OVERRUNS, SUSPENSION_SECONDS, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("overruns", "seconds_later", "suspended"),
    [
        (OVERRUNS - 1, 0.0, False),
        (OVERRUNS, 0.0, True),
        (OVERRUNS, SUSPENSION_SECONDS - 0.1, True),
        (OVERRUNS, SUSPENSION_SECONDS, False),
    ],
)
def test_several_overruns_in_a_row_suspend_for_a_while(
    overruns: int, seconds_later: float, suspended: bool
) -> None:
    clock = Clock()
    breaker = Breaker(clock=clock)
    for _ in range(overruns):
        breaker.overran("filter (a.py:1)")
    clock.now += seconds_later
    assert breaker.is_open is suspended


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker = Breaker(clock=Clock())
    for _ in range(OVERRUNS - 1):
        breaker.overran("filter (a.py:1)")
    breaker.succeeded()
    for _ in range(OVERRUNS - 1):
        breaker.overran("filter (a.py:1)")
    assert not breaker.is_open


def test_after_the_suspension_one_more_overrun_suspends_again() -> None:
    clock = Clock()
    breaker = Breaker(clock=clock)
    for _ in range(OVERRUNS):
        breaker.overran("filter (a.py:1)")
    clock.now += SUSPENSION_SECONDS
    breaker.overran("filter (a.py:1)")
    assert breaker.is_open


def test_after_the_suspension_a_success_closes_for_good() -> None:
    clock = Clock()
    breaker = Breaker(clock=clock)
    for _ in range(OVERRUNS):
        breaker.overran("filter (a.py:1)")
    clock.now += SUSPENSION_SECONDS
    breaker.succeeded()
    breaker.overran("filter (a.py:1)")
    assert not breaker.is_open
