"""The command `moorage new-plugin`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.failures import clear_failures
from cli.shared.output import echo

if TYPE_CHECKING:
    from cli.skeleton.writing import Form, Kind


@click.command("new-plugin")
@click.argument("name")
@click.argument(
    "directory",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--kind",
    default="filter",
    type=click.Choice(["filter", "score", "bind"]),
    show_default=True,
    help="Whether it rules nodes out, ranks them, or acts when pods are bound.",
)
@click.option(
    "--form",
    default="node",
    type=click.Choice(["node", "batch", "permit"]),
    show_default=True,
    help="Whether a filter or score plugin is asked node by node, or about all nodes at once; "
    "permit is a bind plugin that waits for other pods.",
)
@click.option("--package", is_flag=True, help="Write a project that pip can install.")
def new_plugin(
    name: str, directory: Path | None, kind: "Kind", form: "Form", package: bool
) -> None:
    """Write the skeleton of a plugin and its test into DIR, by default here.

    NAME is the plugin's name, such as MaxTemperature. With --package, DIR is by default a new
    folder of the project's name. No file is written over.
    """
    if kind == "bind" and form == "batch":
        raise click.UsageError("a bind plugin is asked about one pod and node: omit --form batch")
    if kind != "bind" and form == "permit":
        raise click.UsageError("pods wait for others in a bind plugin: add --kind bind")
    with clear_failures():
        from cli.config.policies import load_registries
        from cli.skeleton.writing import write_skeleton

        taken = set(load_registries(())[kind])
        files, to_test, to_run = write_skeleton(
            name, kind, form, directory, package=package, taken=taken
        )
    for file in files:
        echo(f"wrote {file}")
    echo(f"Test it: {to_test}")
    echo(f"Run it:  {to_run}")
