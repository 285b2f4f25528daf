"""Describes the machine, and the commit, of a run."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bench.results import Machine

ROOT = Path(__file__).resolve().parents[1]


def machine() -> Machine:
    """Describe this machine, now."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=_from_proc("cpuinfo", "model name") or platform.processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        python=platform.python_version(),
        kernel=platform.release(),
        commit=_commit(),
        load=os.getloadavg(),
    )


def _from_proc(file: str, key: str) -> str:
    for line in Path("/proc", file).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return run.stdout.strip() or "unknown"
