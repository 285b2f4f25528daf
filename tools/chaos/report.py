"""The table at the end of a campaign, for the terminal and for the documentation."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.chaos.campaign import MOST_POSTS, MOST_SLOWER, Outcome
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
    ("^(kill|SIGTERM)", "pause 5 s"),
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
            next(text for pattern, text in ACCEPTED if re.search(pattern, self.fault)),
        )


PAGE = ROOT / "docs" / "explanation" / "reliability.md"


def write(cells: Sequence[Sequence[str]], campaign: str, about: str) -> None:
    """Put the whole table of a campaign on the page, below a sentence *about* the run."""
    page = PAGE.read_text()
    begin, end = f"<!-- campaign: {campaign} -->\n", "<!-- end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n{about}\n\n{markdown(cells)}\n{end}{after}")


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
    """Return the table for a page; what is 0 in every row is one sentence."""
    zeros = [i for i in range(len(COLUMNS)) if cells and all(row[i] == "0" for row in cells)]
    shown = [i for i in range(len(COLUMNS)) if i not in zeros]
    lines = [COLUMNS, ["---", *(["---:"] * (len(COLUMNS) - 2)), "---"], *cells]
    table = "\n".join(f"| {' | '.join(line[i] for i in shown)} |" for line in lines) + "\n"
    names = ", ".join(COLUMNS[i] for i in zeros)
    return f"0 in every row: {names}.\n\n{table}" if zeros else table
