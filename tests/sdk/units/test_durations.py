import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.units.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1h15m30.918s", 4530.918),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("2.s", 2.0),
        ("100us", 0.0001),
        ("100µs", 0.0001),
        ("100μs", 0.0001),
        ("7ns", 7e-9),
        ("0", 0.0),
        ("-0", 0.0),
        ("-1.5s", -1.5),
        ("+5s", 5.0),
    ],
)
def test_go_durations_are_read_as_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "s", ".s", "5 s", "5S", "1d", "5s ", "--5s", "1m,30s", "inf", "٣s", "00"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match='expected a duration such as "500ms"') as caught:
        parse_duration(text)
    assert f'got "{text}"' in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.5, "500ms"),
        (5.0, "5s"),
        (1.5, "1.5s"),
        (90.0, "1m30s"),
        (3600.0, "1h"),
        (3661.25, "1h1m1.25s"),
        (0.0001, "100µs"),
        (7e-9, "7ns"),
        (-90.5, "-1m30.5s"),
    ],
)
def test_durations_are_shown_in_their_shortest_form(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_duration_survives_being_shown_and_read(nanoseconds: int) -> None:
    assert round(parse_duration(format_duration(nanoseconds / 1e9)) * 1e9) == nanoseconds
