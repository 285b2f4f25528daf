"""Statistics: what is made of the single measurements."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """A sample in brief; the unit is the measurements'."""

    p50: float
    p99: float
    mean: float
    count: int


def figure(values: Iterable[float]) -> Figure:
    """Sum up measurements.

    Raises:
        ValueError: There is none.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("nothing was measured")
    return Figure(
        p50=quantile(ordered, 0.5),
        p99=quantile(ordered, 0.99),
        mean=sum(ordered) / len(ordered),
        count=len(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that *share* (0..1) of the ordered values do not exceed, interpolated."""
    place = share * (len(ordered) - 1)
    low, rest = int(place), place % 1
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * rest


def growth_exponent(values: Mapping[int, float]) -> float:
    """Return the slope of log(value) over log(size): 1 is linear, less is better.

    Raises:
        ValueError: There are fewer than two sizes, or a value is not positive.
    """
    if len(values) < 2:
        raise ValueError("growth needs two sizes")
    xs = [math.log(size) for size in values]
    ys = [math.log(value) for value in values.values()]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - x_mean) ** 2 for x in xs)
