"""Kubernetes quantities ("500m", "16Gi") as whole numbers, for everything that adds up resources.

Models keep quantities as they were written; `scaled` turns them into what kube-scheduler computes
with: millicores of "cpu", bytes or counts of everything else, fractions rounded away from zero.
The grammar and the rounding are those of Kubernetes' `resource.Quantity`, with one cap: a value
that does not fit an int64 becomes the nearest one that does.
"""

import re
from functools import lru_cache
from typing import Final

Quantity = str | int | float
"""A quantity as JSON carries it: usually a string, but numbers are allowed."""

INT64_MAX: Final = 2**63 - 1
"""The largest scaled value; the smallest is its negative."""

_MAX_LENGTH: Final = 256  # characters; far beyond any real quantity, short of costing time
_CACHE_SIZE: Final = 16_384  # nodes and pods repeat a few quantities all the time

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BYTES: Final = frozenset(("memory", "ephemeral-storage", "storage"))


_SPACES: Final = (
    " \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000")
)
"""What may stand around a quantity: JSON writes other spaces as escapes, which are none."""

_TOO_LARGE_FOR_NONE: Final = frozenset(("Pi", "Ei"))
"""Suffixes that Kubernetes does not read without a digit; with any other one it reads 0."""


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity; the message quotes it."""


def scaled(resource: str, value: Quantity) -> int:
    """Return millicores if the resource is "cpu", whole bytes or a count otherwise.

    Raises:
        QuantityError: The value is not a quantity.
    """
    return scaled_by(resource == "cpu", value)


def format_quantity(resource: str, scaled_value: int) -> str:
    """Write a scaled value as Kubernetes would: 1500 "cpu" is "1500m", 2**30 "memory" is "1Gi"."""
    if resource == "cpu":
        return _decimal(scaled_value, exponent=-3)
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _binary(scaled_value)
    return _decimal(scaled_value, exponent=0)


@lru_cache(maxsize=_CACHE_SIZE)
def scaled_by(milli: bool, value: Quantity) -> int:
    """Return thousandths if *milli*, whole numbers otherwise; raises as `scaled` does."""
    text = value.strip(_SPACES) if isinstance(value, str) else repr(value)
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _no_quantity(text)
    fraction = match["fraction"] or ""
    suffix = match["suffix"] or ""
    if suffix in _TOO_LARGE_FOR_NONE and not match["whole"] + fraction:
        raise _no_quantity(text)
    power = int(match["exponent"] or _DECIMAL.get(suffix, 0)) - len(fraction) + 3 * milli
    digits = int(match["whole"] + fraction or "0") << _BINARY.get(suffix, 0)
    size = min(_times_power_of_ten(digits, power), INT64_MAX)
    return -size if match["sign"] == "-" else size


def _no_quantity(text: str) -> QuantityError:
    return QuantityError(
        f'{text[:_MAX_LENGTH]!r} is not a quantity: write a number like "2", "1.5", "500m", '
        '"16Gi" or "1e3", without spaces'
    )


def _times_power_of_ten(digits: int, power: int) -> int:
    # Powers are bounded, or "1e999999999" would be a way to stop the process.
    if power >= 0:
        return digits * int(10 ** min(power, 20))
    return -(-digits // int(10 ** min(-power, 2 * _MAX_LENGTH)))


def _decimal(value: int, exponent: int) -> str:
    if value == 0:
        return "0"
    while value % 1000 == 0 and exponent < 18:
        value //= 1000
        exponent += 3
    return f"{value}{_DECIMAL_SUFFIX[exponent]}"


def _binary(value: int) -> str:
    if abs(value) < 1024:
        return _decimal(value, exponent=0)
    suffixes = iter(("", *_BINARY))
    suffix = next(suffixes)
    while value % 1024 == 0:
        value //= 1024
        suffix = next(suffixes)
    return f"{value}{suffix}"
