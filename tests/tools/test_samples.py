"""Growth is found in samples, and a steady process is not accused."""

import math

from tools.soak.samples import Sample, Usage, slope, trend


def samples(rss: list[float], descriptors: list[int]) -> list[Sample]:
    """Make one sample a minute."""
    return [
        Sample(
            minutes=minute,
            usage={"gateway": Usage(rss=mib, descriptors=count, threads=3)},
        )
        for minute, (mib, count) in enumerate(zip(rss, descriptors, strict=True))
    ]


def test_the_slope_is_in_mib_an_hour() -> None:
    assert math.isclose(slope([(0.0, 100.0), (0.5, 101.0), (1.0, 102.0)]), 2.0)
    assert slope([(1.0, 5.0)]) == 0.0


def test_memory_that_is_gained_while_warming_up_does_not_count() -> None:
    rss = [50.0 + 10 * minute for minute in range(10)] + [140.0] * 20
    calm = Usage(rss=140.0, descriptors=30, threads=3)
    found = trend("gateway", samples(rss, [30] * 10 + [40] * 20), warm_up=10, calm=calm)
    assert (found.slope, found.descriptors, found.threads) == (0.0, 0, 0)
    assert not found.grows(24.0)


def test_a_leak_of_memory_and_descriptors_is_found() -> None:
    rss = [100.0 + minute for minute in range(40)]
    calm = Usage(rss=140.0, descriptors=39, threads=5)
    found = trend("gateway", samples(rss, list(range(40))), warm_up=10, calm=calm)
    assert math.isclose(found.slope, 60.0)
    assert (found.descriptors, found.threads) == (39, 2)
    assert found.grows(24.0)
    assert found.grows(99.0)  # for its descriptors
