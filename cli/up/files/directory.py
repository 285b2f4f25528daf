"""The directory of a run: logs, and what the processes read."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(slots=True, kw_only=True)
class Run:
    """The directory of a run; it stays if the run failed."""

    path: Path
    failed: bool = True

    def write(self, name: str, text: str) -> Path:
        """Write a file and return its path."""
        file = self.path / name
        file.write_text(text)
        return file


@contextmanager
def run_directory() -> Iterator[Run]:
    """Make the directory; at the end of the block remove it, or print where it is."""
    run = Run(path=Path(tempfile.mkdtemp(prefix="moorage-")))
    try:
        yield run
    finally:
        if run.failed:
            click.echo(f"The logs of this run are in {run.path}", err=True)
        else:
            shutil.rmtree(run.path, ignore_errors=True)
