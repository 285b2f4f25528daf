"""A shadow takes no more than its share of the time."""

import pytest

from gateway.whatif.shadow_tally import Budget


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seconds", [0.002, 0.05, 3.0])
def test_the_share_is_kept_whatever_a_run_takes(seconds: float) -> None:
    clock, runs = Clock(), 0
    budget = Budget(0.1, clock)
    while clock.now < 200:
        if budget.allows:
            budget.spend(seconds)
            clock.now += seconds
            runs += 1
        clock.now += 0.001
    assert budget.used <= 0.1 + (seconds + 0.1) / 100
    assert budget.used > 0.09
    assert budget.spent == pytest.approx(runs * seconds)


def test_what_a_quiet_time_saves_is_bounded() -> None:
    clock = Clock()
    budget = Budget(0.1, clock)
    clock.now += 3600
    spent = 0.0
    while budget.allows:
        budget.spend(0.01)
        spent += 0.01
    assert spent == pytest.approx(0.1, abs=0.011)


def test_no_share_allows_nothing() -> None:
    clock = Clock()
    budget = Budget(0.0, clock)
    clock.now += 1000
    assert not budget.allows
