"""Turns exceptions into one clear line and an exit code. For every command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from moorage.errors import MoorageError, causes


@contextmanager
def clear_failures() -> Iterator[None]:
    """Run a command; if it fails for a reason that the user can change, print it and exit with 1.

    Of several failures at once the first is printed: the others are mostly its consequences.

    Raises:
        SystemExit: With 1, after a line on stderr.
    """
    try:
        yield
    except Exception as error:
        found = next((e for e in causes(error) if isinstance(e, MoorageError)), None)
        if found is None:
            raise
        click.echo(f"moorage: {found}", err=True)
        sys.exit(1)
