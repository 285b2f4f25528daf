"""Processor time of processes, as Linux counts it."""

import os
from collections.abc import Mapping
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
USER, SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the command, which may have spaces and ends with a parenthesis."""


def processor_seconds(pid: int) -> float:
    """Return the processor time that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[USER]) + int(fields[SYSTEM])) / TICKS_PER_SECOND


class ProcessorTime:
    """Counts from when it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._before = {name: processor_seconds(pid) for name, pid in pids.items()}

    def milliseconds_a_pod(self, pods: int) -> dict[str, float]:
        """Return what each process has used since, divided by a number of pods."""
        used = {name: processor_seconds(pid) for name, pid in self._pids.items()}
        return {name: 1000 * (used[name] - self._before[name]) / pods for name in used}
