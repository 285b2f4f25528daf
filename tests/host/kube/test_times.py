from datetime import UTC, datetime, timedelta, timezone

from moorage_host.kube import micro_time


def test_a_micro_time_has_six_digits_even_at_a_full_second() -> None:
    assert micro_time(datetime(2026, 1, 2, 3, 4, 5, 0, UTC)) == "2026-01-02T03:04:05.000000Z"


def test_a_micro_time_is_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, east)
    assert micro_time(moment) == "2026-01-02T01:04:05.000678Z"
