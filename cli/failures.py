"""Turns what went wrong into one clear line and an exit code. For every command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from moorage.errors import MoorageError, causes


@contextmanager
def clear_failures() -> Iterator[None]:
    """Run a command; if something is wrong that people can change, say so and exit with 1.

    Of several failures at once the first is told: the others are mostly its consequences.

    Raises:
        SystemExit: With 1, after a line on stderr.
    """
    try:
        yield
    except Exception as error:
        told = next((e for e in causes(error) if isinstance(e, MoorageError)), None)
        if told is None:
            raise
        click.echo(f"moorage: {told}", err=True)
        sys.exit(1)
