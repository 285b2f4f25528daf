"""Draws what a gateway is doing, as wide as the terminal is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.decisions.top.view import Replica, View
from gateway.decisions.why import OLD_SECONDS

MOST_PLUGINS, MOST_REPLICAS = 12, 8

NUMBER = re.compile(r"(<?[\d.e+-]+( m?s| us)?)?$")
"""A number or a time, or nothing."""


def draw(view: View) -> RenderableType:
    """Return a view for a terminal."""
    return Group(*_parts(view))


def _parts(view: View) -> Iterator[RenderableType]:
    role = "decides" if view.decides else "STANDS BY"
    yield Text(f"{view.gateway}  {role}, epoch {view.epoch}", style="bold", no_wrap=True)
    counts = f"{view.cycles:.1f} cycles/s  {view.nodes} nodes  {view.pods} pods"
    yield Text(counts, overflow="fold")
    if view.age > OLD_SECONDS:
        yield Text(f"API server silent for {view.age:.0f} s", style="bold red", overflow="fold")
    yield from _table(
        ("WORK", "/S", "P50", "P99", "FAIL/S"),
        [
            (each.name, f"{each.rate:.1f}", _time(each.p50), _time(each.p99), _few(each.failed))
            for each in view.work
        ],
    )
    yield from _table(
        ("PLUGIN", "PHASE", "/S", "MEAN", "P99", "REJ/S", "FAIL/S"),
        [
            (
                each.plugin,
                each.phase,
                f"{each.rate:.1f}",
                _time(each.mean),
                _time(each.p99),
                _few(each.rejected),
                _few(each.failed),
            )
            for each in view.plugins[:MOST_PLUGINS]
        ],
    )
    yield from _table(
        ("SERVICE", "REPLICA", "GENERATION", "BEHIND", "CYCLES"),
        [_replica(each) for each in view.replicas[:MOST_REPLICAS]],
    )
    yield from _table(
        ("NEWEST PODS", "AGO", "OUTCOME", "NODE", "REASON"),
        [_decision(each) for each in view.decisions],
    )


def _replica(each: Replica) -> Sequence[str]:
    if not each.replica:
        shown = each.problem or f"{each.ready} take part"
        return each.service, shown, "", "", ""
    name = f"{each.place or each.replica}{f' ({each.problem})' if each.problem else ''}"
    return each.service, name, str(each.generation), str(each.behind), str(each.unanswered)


def _decision(each: Mapping[str, Any]) -> Sequence[str]:
    ago = (datetime.now(UTC) - datetime.fromisoformat(each["time"])).total_seconds()
    return (
        f"{each['namespace']}/{each['pod']}",
        f"{max(ago, 0):.0f} s",
        each["outcome"],
        each.get("node") or "",
        each["reason"],
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    """Yield a table below an empty line; where it is too wide, texts lose their ends."""
    yield Text("")
    if not rows:
        yield Text(f"{header[0]}  none yet", style="dim")
        return
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True
    )
    for name, *cells in zip(header, *rows, strict=True):
        is_number = all(map(NUMBER.match, cells))
        table.add_column(name, no_wrap=is_number, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    yield table


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} us"


def _few(rate: float) -> str:
    return f"{rate:.1f}" if rate >= 0.05 else ("0" if not rate else "<0.1")
