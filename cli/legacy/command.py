"""The command `moorage convert-policy`."""

from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.output import echo


@click.command("convert-policy")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--scheduler-name",
    metavar="NAME",
    default="default-scheduler",
    show_default=True,
    help="The profile's schedulerName, which a Policy does not have.",
)
def convert_policy(file: Path, scheduler_name: str) -> None:
    """Translate FILE, a Policy of kube-scheduler before 1.23, into its configuration of today.

    What was changed or dropped, and why, is on stderr line by line.
    """
    with clear_failures():
        from cli.legacy.convert import convert

        configuration, notes = convert(file, scheduler_name)
    for note in notes:
        echo(f"Note: {note}", err=True)
    echo(configuration, nl=False)
