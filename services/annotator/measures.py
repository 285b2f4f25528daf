"""What Prometheus is asked: how much CPU and memory is free on each node, and how steadily.

Measures are named after the annotations that they become. All are asked for in one query.
"""

from typing import Final

from moorage.measurements import Measure
from moorage.units.durations import format_duration

LONGEST_RATE: Final = 300.0
"""The time, in seconds, over which rates are taken at most: a longer one hides deviations."""

_STEPS: Final = 5
"""How many rates are taken in the time of one."""

_LEAST_RATE: Final = 2.0


def measures(window: float) -> dict[str, Measure]:
    """Return mean and standard deviation over the last *window* seconds, by annotation.

    CPU is in millicores, memory in bytes. CPU time is a counter, so the deviation is one of its
    rates, not of its readings. Nodes that are not measured now
    have none, even if they were measured before.
    """
    rate = min(max(window / 3, _LEAST_RATE), LONGEST_RATE)
    idle = f'rate(node_cpu_seconds_total{{mode="idle"}}[{format_duration(round(rate))}])'
    times = f"[{format_duration(window)}:{format_duration(round(max(rate / _STEPS, 1)))}]"
    found = {}
    for name, function in (("mean", "avg"), ("std", "stddev")):
        over_time = f"({function}_over_time(({{}}){times}) and ({{}}))"
        found[f"{name}-free-cpu"] = Measure(
            series=idle, aggregate="sum", distinct=("cpu",), form=f"1000 * {over_time}"
        )
        found[f"{name}-free-memory"] = Measure(
            series="node_memory_MemAvailable_bytes", form=over_time
        )
    return found
