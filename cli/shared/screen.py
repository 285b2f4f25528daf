"""What people see: rich output on a terminal, plain lines that grep understands elsewhere."""

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.table import Column, Table
from rich.text import Text

from cli.shared.pace import Pace

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

    @property
    def most_rows(self) -> int:
        """The longest table: somewhat more than a terminal shows; far more in a file."""
        return 50 if self._console.is_terminal else 1000

    def write(self, text: str, style: str = "") -> None:
        """Write a line; it is never cut or broken."""
        self._console.print(text, style=style, soft_wrap=True)

    def sentence(self, text: str, style: str = "") -> None:
        """Write lines; a terminal that is too narrow gets more, broken between words."""
        for whole in text.splitlines():
            for line in self._wrapped(whole) if self._console.is_terminal else [whole]:
                self.write(line, style)

    def lines(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table in which each row is one line, unless the terminal is too narrow."""
        lines = list(_aligned([header, *rows]))
        if self._console.is_terminal and max(map(len, lines)) > self._console.width:
            self._stack(rows)
            return
        for line in lines:
            self.write(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table that fits the terminal and cuts no name; elsewhere as `lines` does."""
        if not self._console.is_terminal:
            self.lines(header, rows)
            return
        *names, _ = (max(map(len, column)) for column in zip(header, *rows, strict=True))
        if sum(names) + len(names) * len(GAP) + LEAST_REASON > self._console.width:
            self._stack(rows)
            return
        columns = [*(Column(name, no_wrap=True) for name in header[:-1]), Column(header[-1])]
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*row)
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
    def progress(self, text: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
        """Show how much is done, how fast it goes and how long the rest takes.

        Gives the function to call with the number of things that are done; *done* are at the start.
        """
        pace = Pace(total, done)
        if not self._console.is_terminal:
            plain = _PlainProgress(self, text, pace)
            yield plain.update
            plain.show()
            return
        with Progress(_PaceColumn(text, pace, self._console), console=self._console) as progress:
            progress.add_task(text, total=total)
            yield pace.update

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


class _PaceColumn(ProgressColumn):
    """One line; without its text where the terminal is too narrow for both."""

    def __init__(self, text: str, pace: Pace, console: Console) -> None:
        super().__init__(Column(no_wrap=True))
        self._text = text
        self._pace = pace
        self._console = console

    def render(self, task: Task) -> Text:
        del task
        line = f"{self._text}: {self._pace}"
        return Text(line if len(line) <= self._console.width else str(self._pace))


class _PlainProgress:
    def __init__(self, screen: Screen, text: str, pace: Pace) -> None:
        self._screen = screen
        self._text = text
        self._pace = pace
        self._shown_at = time.monotonic()

    def update(self, done: int) -> None:
        self._pace.update(done)
        if time.monotonic() - self._shown_at > PLAIN_PROGRESS_SECONDS:
            self._shown_at = time.monotonic()
            self.show()

    def show(self) -> None:
        self._screen.write(f"{self._text}: {self._pace}")


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        yield GAP.join([*padded, " ".join(last.split())])
