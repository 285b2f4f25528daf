"""Writes a run into the performance page and README.md: python -m bench.report [FILE]."""

import sys
from pathlib import Path

import click

from bench.report import page
from bench.report.files import LATEST


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path), default=LATEST)
def main(file: Path) -> None:
    """Replace the tables and plots of the parts that FILE has; without it, of the newest run."""
    try:
        parts = page.main(file)
    except page.PageError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Written from {file}: {', '.join(parts)}")


if __name__ == "__main__":
    sys.exit(main())
