"""Quantities and durations, against the rules that Kubernetes and Go write down."""

import re
from fractions import Fraction
from math import ceil

from moorage.units.durations import format_duration, parse_duration
from moorage.units.quantity import INT64_MAX, QuantityError, format_quantity, scaled
from tools.fuzz.targets.target import Target, require

_LETTERS = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DECIMAL = dict(zip(_LETTERS, range(-9, 21, 3), strict=True))
_SUFFIXES = {suffix: Fraction(10) ** power for suffix, power in _DECIMAL.items()} | {
    f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)
}
_LONGEST = 256  # characters of a quantity that are read at all


class Quantities(Target):
    """`moorage.units.quantity`: the first line is a quantity."""

    name = "quantities"
    share = 40
    tokens = ("Ki", "Ei", "n", "m", "E", "e", "e-", "E+", ".", "-", "99999999999999999999", "1e309")
    longest = 300

    async def case(self, data: bytes) -> None:
        text = data.decode(errors="surrogateescape")
        expected = _quantity(text)
        for resource, factor in (("cpu", 1000), ("memory", 1)):
            try:
                value = scaled(resource, text)
            except QuantityError:
                require(expected is None, "refuses a quantity of Kubernetes", text)
                continue
            if expected is None:
                require(False, "takes what Kubernetes refuses", text)
                return
            size = min(ceil(abs(expected) * factor), INT64_MAX)
            require(abs(value) == size, "another value than Kubernetes", (text, value, size))
            require(value <= 0 or expected >= 0, "another sign than Kubernetes", text)
            written = format_quantity(resource, value)
            require(scaled(resource, written) == value, "does not read what it writes", written)


def _quantity(text: str) -> Fraction | None:
    """Read a quantity as the comment at Kubernetes' `resource.Quantity` has its grammar."""
    match = re.fullmatch(r"([+-]?)([0-9.]+)((?:[eE][+-]?[0-9]+)|[a-zA-Z]*)", text, re.ASCII)
    if match is None or len(text) > _LONGEST or not re.search("[0-9]", match[2]):
        return None
    if match[2].count(".") > 1 or (match[3] not in _SUFFIXES and not match[3][1:]):
        return None
    if match[3] in _SUFFIXES:
        factor = _SUFFIXES[match[3]]
    elif re.fullmatch(r"[eE][+-]?[0-9]+", match[3]):
        factor = Fraction(10) ** max(-300, min(300, int(match[3][1:])))
    else:
        return None
    whole, _, fraction = match[2].partition(".")
    number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * factor
    return -number if match[1] == "-" else number


_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PRECISION = Fraction(1, 10**9)


class Durations(Target):
    """`moorage.units.durations`."""

    name = "durations"
    share = 30
    tokens = (*_NANOSECONDS, "1h30m", ".", "-", "+", "9223372036854775807")
    longest = 400

    async def case(self, data: bytes) -> None:
        text = data.decode(errors="surrogateescape")
        expected = _duration(text)
        try:
            seconds = parse_duration(text)
        except ValueError:
            require(expected is None, "refuses a duration of Go", text)
            return
        if expected is None:
            require(False, "takes what Go refuses", text)
            return
        error = abs(Fraction(seconds) - expected)
        require(error <= max(_PRECISION, abs(expected) / 2**50), "another value", (text, seconds))
        again = parse_duration(format_duration(seconds))
        require(abs(again - seconds) <= max(2e-9, abs(seconds) / 2**50), "written wrongly", text)


def _duration(text: str) -> Fraction | None:
    """Read a duration as Go's `time.ParseDuration` does, in seconds."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return Fraction(0)
    total = Fraction(0)
    if not rest:
        return None
    while rest:
        match = re.match(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)(?![a-zµμ])", rest)
        if match is None or not (match[1] or (match[2] or "")[1:]):
            return None
        digits = (match[2] or ".")[1:]
        number = Fraction(int(match[1] + digits or "0"), 10 ** len(digits))
        total += number * _NANOSECONDS[match[3]]
        rest = rest[match.end() :]
    if total > 2**63 - 2**10 or len(text) > _LONGEST:
        return None  # Go: an int64 of nanoseconds; a float cannot hold the largest exactly
    return (-total if text.startswith("-") else total) / 10**9
