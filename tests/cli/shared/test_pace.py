"""The rate of work and the time left."""

from cli.shared.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_rate_and_time_left_are_those_of_the_newest_seconds() -> None:
    clock = Clock()
    pace = Pace(2000, clock=clock)
    assert str(pace) == "0/2000"
    for _ in range(60):  # slow at first
        clock.now += 1
        pace.update(100)
    for done in range(125, 413, 25):
        clock.now += 1
        pace.update(done)
    clock.now += 12 / 25
    pace.update(412)
    assert str(pace) == "412/2000 · 25/s · 64 s left"


def test_what_was_done_before_is_not_part_of_the_rate() -> None:
    clock = Clock()
    pace = Pace(100, 90, clock)
    clock.now += 2
    pace.update(95)
    assert str(pace) == "95/100 · 2.5/s · 2 s left"


def test_no_time_is_left_when_nothing_happens_or_all_is_done() -> None:
    clock = Clock()
    pace = Pace(100, clock=clock)
    clock.now += 5
    assert str(pace) == "0/100 · 0/s"
    pace.update(100)
    assert str(pace) == "100/100"


def test_a_long_time_is_in_minutes() -> None:
    clock = Clock()
    pace = Pace(1201, clock=clock)
    clock.now += 1
    pace.update(1)
    assert str(pace) == "1/1201 · 1/s · 20 min left"
