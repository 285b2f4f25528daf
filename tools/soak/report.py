"""Writes samples as CSV, draws them, and prints the trends."""

import csv
from collections.abc import Sequence
from pathlib import Path

from cli.shared.drawing.svg import lines
from tools.soak.samples import Sample, Trend


def write_csv(samples: Sequence[Sample], names: Sequence[str], folder: Path) -> None:
    """Write soak.csv; after every sample, so that a run can be watched."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "soak.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        each = [f"{name}_{what}" for name in names for what in ("mib", "fds", "threads")]
        rows.writerow(["minutes", "pods", "p50_ms", "p99_ms", *each])
        for one in samples:
            used = [one.usage[name] for name in names]
            columns = [f"{v}" for u in used for v in (round(u.rss, 1), u.descriptors, u.threads)]
            rows.writerow(
                [f"{one.minutes:.2f}", one.pods, f"{one.p50:.2f}", f"{one.p99:.2f}", *columns]
            )


def draw(samples: Sequence[Sample], names: Sequence[str], folder: Path) -> None:
    """Write the plots."""
    memory = {name: [(s.minutes, s.usage[name].rss) for s in _some(samples)] for name in names}
    (folder / "soak-memory.svg").write_text(
        lines("Memory of each process", memory, "MiB", across="minutes")
    )
    latency = {
        "p50": [(s.minutes, s.p50) for s in _some(samples)],
        "p99": [(s.minutes, s.p99) for s in _some(samples)],
    }
    (folder / "soak-latency.svg").write_text(
        lines("A filter call under churn", latency, "ms", across="minutes")
    )


def table(trends: Sequence[Trend]) -> str:
    """Return the trends as text."""
    head = f"{'process':15} {'MiB then':>9} {'now':>7} {'MiB/h':>8} {'95 %':>7} {'fds':>5} threads"
    rows = [
        f"{t.name:15} {t.first:>9.1f} {t.last:>7.1f} {t.slope:>+8.1f} {f'±{t.error:.1f}':>7} "
        f"{t.descriptors:>+5} {t.threads:>+7}"
        for t in trends
    ]
    return "\n".join([head, *rows])


def _some(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return at most 120 of the samples: a plot has no room for more."""
    return samples[:: max(len(samples) // 120, 1)]
