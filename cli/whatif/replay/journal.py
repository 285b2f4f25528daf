"""The command `moorage journal show`."""

from pathlib import Path

import click

from cli.shared.failures import clear_failures

JOURNAL = click.Path(exists=True, path_type=Path)


@click.group()
def journal() -> None:
    """Look into the journal of a gateway."""


@journal.command()
@click.argument("journal", type=JOURNAL)
@click.option("--pod", default="", metavar="NAMESPACE/POD", help="Only cycles of this pod.")
@click.option(
    "--cycles",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="How many cycles to show, the newest.",
)
def show(journal: Path, pod: str, cycles: int) -> None:
    """List the segments of JOURNAL, and its newest cycles."""
    with clear_failures():
        from cli.shared.screen import Screen
        from cli.whatif.replay.showing import show as write

        write(journal, pod, cycles, Screen())
