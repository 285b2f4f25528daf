"""What people see: rich output on a terminal, plain lines that grep understands elsewhere."""

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from moorage.units.printable import printable

PLAIN_PROGRESS_SECONDS = 3.0
"""How often progress is worth a line where it cannot be drawn."""

LEAST_REASON = 30
"""Columns that the last cell of a row needs beside the others; with fewer it stands below them."""

GAP = "  "


class Screen:
    """Writes to stdout."""

    def __init__(self, console: Console | None = None) -> None:
        """Write to *console*; a new one by default."""
        self._console = console or Console(markup=False, emoji=False, highlight=False)

    def write(self, text: str, style: str = "") -> None:
        """Write a line; it is never cut or broken."""
        self._console.print(printable(text, lines=True), style=style, soft_wrap=True)

    def sentence(self, text: str, style: str = "") -> None:
        """Write lines; a terminal that is too narrow gets more, broken between words."""
        for whole in text.splitlines():
            for line in self._wrapped(whole) if self._console.is_terminal else [whole]:
                self.write(line, style)

    def legend(self, text: str) -> None:
        """Explain on a terminal what is shown; programs that read the lines need no such help."""
        if self._console.is_terminal:
            self.sentence(text, style="dim")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table that fits the terminal and cuts no name; elsewhere each row is one line."""
        if not self._console.is_terminal:
            for line in _aligned([header, *rows]):
                self.write(line)
            return
        *names, _ = (max(map(len, column)) for column in zip(header, *rows, strict=True))
        if sum(names) + len(names) * len(GAP) + LEAST_REASON > self._console.width:
            self._stack(rows)
            return
        columns = [*(Column(name, no_wrap=True) for name in header[:-1]), Column(header[-1])]
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(printable(cell, lines=True) for cell in row))
        self._console.print(table)

    @contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Show what is going on while the block runs."""
        if not self._console.is_terminal:
            self.write(text)
            yield
            return
        with self._console.status(text):
            yield

    @contextmanager
    def progress(self, text: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show how much is done and, on a terminal, how long the rest takes.

        Gives the function to call with the number of things that are done.
        """
        if self._console.is_terminal:
            columns = TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn()
            with Progress(*columns, console=self._console) as shown:
                task = shown.add_task(text, total=total)
                yield lambda now: shown.update(task, completed=now)
            return
        done, shown_at = 0, time.monotonic()

        def update(now: int) -> None:
            nonlocal done, shown_at
            done = now
            if time.monotonic() - shown_at > PLAIN_PROGRESS_SECONDS:
                shown_at = time.monotonic()
                self.write(f"{text}: {done}/{total}")

        yield update
        self.write(f"{text}: {done}/{total}")

    def _stack(self, rows: Sequence[Sequence[str]]) -> None:
        """Write each row in several lines: the names, and the last cell below them."""
        for *names, last in rows:
            for line in self._wrapped(GAP.join(names)):
                self.write(line, "bold")
            for line in self._wrapped(GAP + " ".join(last.split())):
                self.write(line)

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(
            text,
            self._console.width,
            subsequent_indent=GAP,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        yield GAP.join([*padded, " ".join(last.split())])
