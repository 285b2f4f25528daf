"""The command `moorage convert-policy`."""

from pathlib import Path

import click

from cli.config.gateway import GATEWAY_URL
from cli.shared.failures import clear_failures


@click.command("convert-policy")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write kube-scheduler-config.yaml and policy.yaml there instead of printing them.",
)
@click.option(
    "--scheduler-name",
    metavar="NAME",
    default="default-scheduler",
    show_default=True,
    help="The profile's schedulerName, which a Policy does not have.",
)
@click.option(
    "--gateway",
    metavar="URL",
    default=GATEWAY_URL,
    show_default=True,
    help="Where kube-scheduler finds Moorage; an https URL is called with a certificate.",
)
def convert_policy(file: Path, output_dir: Path | None, scheduler_name: str, gateway: str) -> None:
    """Translate FILE, a Policy of kube-scheduler before 1.23.

    Prints a KubeSchedulerConfiguration and a MoorageConfiguration. What was changed or dropped, and
    why, is on stderr line by line.
    """
    with clear_failures():
        from cli.config.policies import available_plugins
        from cli.legacy.convert import convert, write

        conversion = convert(file, available_plugins(), scheduler_name, gateway)
        written = write(conversion, output_dir) if output_dir else []
    for note in conversion.notes:
        click.echo(f"Note: {note}", err=True)
    if output_dir is None:
        click.echo("---\n".join(conversion.documents.values()), nl=False)
    for path in written:
        click.echo(f"wrote {path}")
