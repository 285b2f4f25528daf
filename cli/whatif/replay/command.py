"""The commands `moorage replay` and `moorage journal ...`."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click

from cli.shared.failures import clear_failures

JOURNAL = click.Path(exists=True, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(exists=True, path_type=Path)

CHANGED = 1
"""Exit code: something would have been decided otherwise."""

FAILED = 2
"""Exit code: the journal cannot be replayed; also that of wrong options."""


@click.command()
@click.argument("journal", type=JOURNAL)
@click.option("--config", type=FILE, help="The policy to try. Without it: the recorded one.")
@click.option(
    "--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder with plugins."
)
@click.option(
    "--examples", type=click.IntRange(0, 1000), default=5, show_default=True, help="Of each class."
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def replay(
    journal: Path,
    config: Path | None,
    plugins: tuple[Path, ...],
    examples: int,
    output: Literal["text", "json"],
) -> None:
    """Decide the cycles of a gateway's JOURNAL again, and show what changes.

    JOURNAL is the folder of --journal, or one of its files. Another policy (--config), or other
    code of a plugin (--plugin), is compared with what was recorded. With neither, nothing should
    change.

    The exit code is 0 if nothing changes, 1 if something does, 2 if the journal cannot be replayed.
    """
    with _failures():
        from cli.shared.screen import Screen
        from cli.whatif.replay.output import show
        from cli.whatif.replay.replaying import Replay
        from cli.whatif.replay.report import to_json

        work, screen = Replay(journal, examples=examples), Screen()
        if output == "json":
            report = asyncio.run(work.run(config, plugins, lambda _: None))
            click.echo(to_json(report))
        else:
            with screen.progress("cycles", work.total) as progress:
                report = asyncio.run(work.run(config, plugins, progress))
            show(report, screen)
    sys.exit(CHANGED if report.is_changed or report.not_reproducible else 0)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        with clear_failures():
            yield
    except SystemExit:
        sys.exit(FAILED)
