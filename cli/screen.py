"""What people see: rich output on a terminal, plain lines that grep understands elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

PLAIN_PROGRESS_SECONDS = 2.0
"""How often progress is worth a line where it cannot be drawn."""

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

    def lines(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table in which each row is one line, however long."""
        for line in _aligned([header, *rows]):
            self.write(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table that fits the terminal; elsewhere as `lines` does."""
        if not self._console.is_terminal:
            self.lines(header, rows)
            return
        table = Table(*header, box=None, pad_edge=False, header_style="bold")
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
    def progress(self, text: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show how much is done; give the function to call with it."""
        if not self._console.is_terminal:
            plain = _PlainProgress(self, text, total)
            yield plain.update
            plain.show()
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._console) as progress:
            bar = progress.add_task(text, total=total)
            yield lambda done: progress.update(bar, completed=done)


class _PlainProgress:
    def __init__(self, screen: Screen, text: str, total: int) -> None:
        self._screen = screen
        self._text = text
        self._total = total
        self._done = 0
        self._shown_at = time.monotonic()

    def update(self, done: int) -> None:
        self._done = done
        if time.monotonic() - self._shown_at > PLAIN_PROGRESS_SECONDS:
            self._shown_at = time.monotonic()
            self.show()

    def show(self) -> None:
        self._screen.write(f"{self._text}: {self._done}/{self._total}")


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        yield GAP.join([*padded, " ".join(last.split())])
