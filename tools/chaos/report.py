"""The table at the end of a campaign, for the terminal and for the documentation."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.chaos.campaign import MOST_POSTS, MOST_SLOWER, Outcome
from tools.chaos.schedule import QUIET
from tools.planes.embedded import ROOT

COLUMNS = (
    "fault",
    "rounds",
    "pods",
    "lost",
    "twice",
    "rules broken",
    "old epochs done",
    "picture wrong",
    "POSTs per bind",
    "failed calls",
    "longest pause (s)",
    "p99 to bind (s)",
    "accepted",
)

ACCEPTED: Sequence[tuple[str, str]] = (
    ("^leader: (kill|SIGTERM)", "pause 3 s"),
    ("^leader:", "zeros"),
    ("^(kill|SIGTERM|SIGSTOP binder, two)", "pause 5 s"),
    ("^poison pods: segfault", "1 innocent pod"),
    ("^(poison|24 callers|shadows)", f"p99 {MOST_SLOWER} x"),
    ("^API server slower", "zeros"),
    ("^(API server|Bindings)", f"{MOST_POSTS} POSTs"),
    ("^(no fault|certificates)", "0 failed calls"),
    ("", "zeros"),
)
"""What the issue accepts for rows of this name, beside the zeros: the first that matches."""


@dataclass(slots=True, kw_only=True)
class Row:
    """What became of all rounds with one fault."""

    fault: str
    outcomes: list[Outcome]

    def cells(self) -> Sequence[str]:
        """Return the cells in the order of `COLUMNS`."""
        verdicts = [each.verdict for each in self.outcomes]
        bound = sum(verdict.bound for verdict in verdicts)
        posts = sum(verdict.posts for verdict in verdicts)
        return (
            self.fault,
            str(len(self.outcomes)),
            str(bound),
            str(sum(len(each.lost) for each in self.outcomes)),
            str(sum(verdict.twice for verdict in verdicts)),
            str(sum(len(verdict.broken) for verdict in verdicts)),
            str(sum(each.old_epochs for each in self.outcomes)),
            str(sum(bool(each.picture) for each in self.outcomes)),
            f"{posts / bound:.2f}" if bound else "-",
            str(sum(len(each.failed_calls) for each in self.outcomes)),
            f"{max(verdict.pause for verdict in verdicts):.1f}",
            f"{max(verdict.p99 for verdict in verdicts):.1f}",
            next(text for pattern, text in ACCEPTED if re.search(pattern, self.fault))
            + (", **missed**" if any(each.problems for each in self.outcomes) else ""),
        )


PAGE = ROOT / "docs" / "explanation" / "reliability.md"

BEGINNINGS = {
    PAGE: "The campaign below",
    ROOT / "README.md": "**Reliability.** The [campaign](docs/explanation/reliability.md)",
}
"""How the sentence begins that says what the tables come to."""


def save(path: Path, cells: Sequence[Sequence[str]], plane: str, about: str) -> None:
    """Write the table of a campaign on a plane into a file, with a sentence *about* the run."""
    path.write_text(json.dumps({"plane": plane, "about": about, "cells": cells}))


def publish(path: Path) -> None:
    """Put the table of a file on the page, and what it comes to into README."""
    result = json.loads(path.read_text())
    table = f"\n{result['about']}\n\n{markdown(result['cells'])}\n"
    _replace(PAGE, f"campaign: {result['plane']}", table)
    both = [_published(PAGE.read_text(), plane) for plane in ("embedded", "real")]
    every = [row for rows in both for row in rows]
    lost, twice, broken = (sum(int(row.get(COLUMNS[i], "0")) for row in every) for i in (3, 4, 5))
    pauses = [max((float(row[COLUMNS[10]]) for row in rows), default=0) for rows in both]
    kinds = [sum(not row["fault"].startswith(QUIET) for row in rows) for rows in both]
    missed = sum("missed" in row["accepted"] for row in every)
    line = (
        f"{kinds[0]} kinds of faults ({kinds[1]} on a real control plane) while pods arrive: "
        f"{lost} pods lost, {twice} bound twice, {broken} rules broken; the longest pause without "
        f"a bind was {pauses[0]:.1f} s ({pauses[1]:.1f} s on the real one)"
        + (f". Rows that missed what is accepted for them: {missed}" if missed else "")
    )
    for file, beginning in BEGINNINGS.items():
        _replace(file, "campaign", f"{beginning} injects {line}.\n")


def _replace(file: Path, name: str, content: str) -> None:
    """Put *content* between the marks of a name."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->"
    before, found, rest = file.read_text().partition(begin)
    if not found:
        raise SystemExit(f"{file} has no line {begin.strip()}")
    file.write_text(f"{before}{begin}{content}{end}{rest.partition(end)[2]}")


def _published(page: str, plane: str) -> list[dict[str, str]]:
    """Return the rows of a plane's table on the page."""
    _, _, rest = page.partition(f"<!-- campaign: {plane} -->\n")
    lines = [line for line in rest.partition("<!-- end -->")[0].splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def rows(outcomes: Iterable[Outcome]) -> list[Sequence[str]]:
    """Return a row for each fault, in the order of the first rounds."""
    found: dict[str, Row] = {}
    for outcome in outcomes:
        fault = outcome.round.row
        found.setdefault(fault, Row(fault=fault, outcomes=[])).outcomes.append(outcome)
    return [row.cells() for row in found.values()]


def text(cells: Sequence[Sequence[str]]) -> str:
    """Return the table for a terminal."""
    table = [COLUMNS, *cells]
    widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]

    def line(row: Sequence[str]) -> str:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        return "  ".join([first.strip().ljust(widths[0]), *others])

    return "\n".join(map(line, table))


def markdown(cells: Sequence[Sequence[str]]) -> str:
    """Return the table for a page; sums, and what is 0 in every row, are sentences."""
    rounds, pods = (sum(int(row[i]) for row in cells) for i in (1, 2))
    zeros = [i for i in range(3, len(COLUMNS)) if cells and all(row[i] == "0" for row in cells)]
    shown = [i for i in range(len(COLUMNS)) if i not in (1, 2, *zeros)]
    first, *others = (f"| {' | '.join(row[i] for i in shown)} |" for row in (COLUMNS, *cells))
    rule = f"|---|{'---:|' * (len(shown) - 2)}---|"
    table = "\n".join((first, rule, *others)) + "\n"
    names = f" 0 in every row: {', '.join(COLUMNS[i] for i in zeros)}." if zeros else ""
    return f"{rounds} rounds, {pods:,} pods.{names}\n\n{table}"
