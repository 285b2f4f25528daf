"""Quantities and durations."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.units.durations import format_duration, parse_duration
from moorage.units.quantity import INT64_MAX, Quantity, QuantityError, format_quantity, scaled

EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
FACTORS = {suffix: Fraction(10) ** power for suffix, power in EXPONENTS.items()} | {
    f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)
}


# What Go's resource.Quantity answers: MilliValue, then Value.


@pytest.mark.parametrize(
    "written",
    [
        *("", "1 Gi", "1gi", "1K", "1mi", "1g", "1e", "1e+", "1Ee3", "1e3m", "1m3"),
        *("--1", "1.1.1", "1,5", "0x10", "1_000", "inf", "nan", "cpu", "1\n"),
        *("\uff11", "9" * 300),
    ],
)
def test_anything_else_is_refused_with_the_offending_text(written: str) -> None:
    with pytest.raises(QuantityError) as caught:
        scaled("cpu", written)
    assert repr(written[:200])[:-1] in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("number", "milli"), [(2, 2000), (0.5, 500), (1e22, INT64_MAX), (0, 0)])
def test_json_numbers_are_quantities_too(number: Quantity, milli: int) -> None:
    assert scaled("cpu", number) == milli


@pytest.mark.parametrize("written", ["9Ei", "10E", "1e19", "1e999999999999", "9" * 200])
def test_what_does_not_fit_64_bits_becomes_the_nearest_that_does(written: str) -> None:
    assert scaled("memory", written) == INT64_MAX
    assert scaled("memory", f"-{written}") == -INT64_MAX


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.text("0123456789", min_size=1, max_size=12),
    fraction=st.none() | st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(FACTORS)),
)
def test_scaling_is_exact_arithmetic_rounded_away_from_zero(
    sign: str, whole: str, fraction: str | None, suffix: str
) -> None:
    written = whole if fraction is None else f"{whole}.{fraction}"
    exact = Fraction(f"{written}0") if written.endswith(".") else Fraction(written)
    for resource, unit in (("cpu", 1000), ("memory", 1)):
        expected = min(math.ceil(exact * FACTORS[suffix] * unit), INT64_MAX)
        assert scaled(resource, f"{sign}{written}{suffix}") == (
            -expected if sign == "-" else expected
        )


# What Go's Quantity.String prints.
@pytest.mark.parametrize(
    ("resource", "value", "written"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("cpu", -250, "-250m"),
        ("cpu", 2_000_000, "2k"),
        ("memory", 2**30, "1Gi"),
        ("memory", 3 * 2**29, "1536Mi"),
        ("memory", 1023, "1023"),
        ("memory", 1000, "1k"),
        ("memory", 2048, "2Ki"),
        ("memory", -1024, "-1Ki"),
        ("memory", 2_000_001, "2000001"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("hugepages-2Mi", 2**22, "4Mi"),
        ("pods", 110, "110"),
        ("pods", 2000, "2k"),
        ("example.com/gpu", 1024, "1024"),
    ],
)
def test_values_are_written_as_kubernetes_writes_them(
    resource: str, value: int, written: str
) -> None:
    assert format_quantity(resource, value) == written


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


RECORDED = json.loads((Path(__file__).parents[2] / "data" / "quantities.json").read_text())
"""What a real kube-apiserver makes of texts as a pod's memory; None: it is no amount."""


@pytest.mark.parametrize("text", RECORDED, ids=repr)
def test_a_text_is_an_amount_if_it_is_one_for_the_api_server(text: str) -> None:
    answer = RECORDED[text]
    if answer is None:
        with pytest.raises(QuantityError):
            scaled("memory", text)
    elif answer == "negative":
        assert scaled("memory", text) < 0
    else:
        assert scaled("memory", text) == scaled("memory", answer)
