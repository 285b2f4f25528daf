import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.backoff import Backoff


def test_the_ceiling_of_waits_grows_by_the_factor_up_to_the_maximum() -> None:
    backoff = Backoff(1.0, 5.0, 2.0, rand=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_reset_makes_waits_short_again() -> None:
    backoff = Backoff(1.0, 60.0, 3.0, rand=lambda: 1.0)
    backoff.next(), backoff.next()
    backoff.reset()
    assert backoff.next() == 1.0


@given(retry_after=st.floats(0, 100), rand=st.floats(0, 1, exclude_max=True))
def test_no_wait_is_shorter_than_the_server_asks_for(retry_after: float, rand: float) -> None:
    wait = Backoff(0.5, 5.0, rand=lambda: rand).next(retry_after)
    assert retry_after <= wait <= retry_after + 0.5


@pytest.mark.parametrize(("initial", "maximum", "factor"), [(0, 1, 2), (2, 1, 2), (1, 2, 0.5)])
def test_numbers_out_of_range_are_refused(initial: float, maximum: float, factor: float) -> None:
    with pytest.raises(ValueError, match="cannot back off"):
        Backoff(initial, maximum, factor)
