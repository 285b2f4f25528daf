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

NARROW = 60
"""Columns of a terminal below which only the most important columns of the tables are shown."""

GAP, LEAST_NAME = 2, 8

MOST_PLUGINS, MOST_REPLICAS = 12, 8

NUMBER = re.compile(r"(<?[\d.e+-]+( m?s| us)?)?$")
"""A number or a time, or nothing."""

Rows = Sequence[Sequence[str]]


def draw(view: View, width: int) -> RenderableType:
    """Return a view for a terminal of *width* columns."""
    return Group(*_parts(view, width))


def _parts(view: View, width: int) -> Iterator[RenderableType]:
    narrow = width < NARROW
    role = "decides" if view.decides else "STANDS BY"
    yield Text(f"{view.gateway}  {role}, epoch {view.epoch}", style="bold", no_wrap=True)
    counts = f"{view.cycles:.1f} cycles/s  {view.nodes} nodes  {view.pods} pods"
    yield Text(counts, overflow="fold")
    if view.age > OLD_SECONDS:
        yield Text(f"API server silent for {view.age:.0f} s", style="bold red", overflow="fold")
    yield Text("")
    yield _table(
        width,
        ("WORK", "/S", "P50", "P99", "FAIL/S"),
        [
            (each.name, f"{each.rate:.1f}", _time(each.p50), _time(each.p99), _few(each.failed))
            for each in view.work
        ],
        hidden=(2,) if narrow else (),
    )
    yield Text("")
    yield _table(
        width,
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
        hidden=(1, 2, 4) if narrow else (),
    )
    yield Text("")
    yield _table(
        width,
        ("SERVICE", "REPLICA", "GENERATION", "BEHIND", "CYCLES"),
        [_replica(each) for each in view.replicas[:MOST_REPLICAS]],
        hidden=(2, 4) if narrow else (),
    )
    if view.decisions:
        yield Text("")
        yield _table(
            width,
            ("NEWEST PODS", "AGO", "OUTCOME", "NODE", "REASON"),
            [_decision(each) for each in view.decisions],
            hidden=(4,) if narrow else (),
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


def _table(
    width: int, header: Sequence[str], rows: Rows, hidden: Sequence[int] = ()
) -> RenderableType:
    """Return a table; where it is too wide, names of the widest column lose their ends."""
    if not rows:
        return Text(f"{header[0]}  none yet", style="dim")
    shown = [index for index in range(len(header)) if index not in hidden]
    columns = [[header[index], *(row[index] for row in rows)] for index in shown]
    widths = [max(map(len, column)) for column in columns]
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    widest = widths.index(max(widths))
    if excess > 0:
        most = max(widths[widest] - excess, LEAST_NAME)
        columns[widest] = [_cut(cell, most) for cell in columns[widest]]
    table = Table(
        box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0), collapse_padding=True
    )
    for name, *cells in columns:
        is_number = all(map(NUMBER.match, cells))
        table.add_column(name, no_wrap=True, justify="right" if is_number else "left")
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*row)
    return table


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} us"


def _few(rate: float) -> str:
    return f"{rate:.1f}" if rate >= 0.05 else ("0" if not rate else "<0.1")
