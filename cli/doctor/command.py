"""The command `moorage doctor`."""

import asyncio
import sys
from pathlib import Path
from typing import Literal

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options

INSTALL = Path(__file__).resolve().parents[2] / "deploy" / "install"
"""The rendered release, in a checkout and in a wheel."""


@click.command()
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration on disk, where kube-scheduler's own is not in a ConfigMap.",
)
@click.option(
    "--plugin",
    "plugins",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="A Python file or folder with plugins of yours, to compare managedResources.",
)
@click.option(
    "--layout",
    type=click.Choice(sorted(file.stem for file in INSTALL.glob("*.yaml"))),
    help="The layout that is installed; by default the one that the cluster's objects look like.",
)
@click.option("--strict", is_flag=True, help="Warnings count as problems for the exit code.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
)
@click.option("--verbose", "-v", is_flag=True, help="List what is ok too.")
@gateway_options
def doctor(
    *,
    config: Path | None,
    plugins: tuple[Path, ...],
    layout: str | None,
    strict: bool,
    output: Literal["text", "json"],
    verbose: bool,
    options: GatewayOptions,
) -> None:
    """Check a live installation, and name what to change.

    Nothing in the cluster is changed. The exit code is 1 if there is a problem, 2 if nothing could
    be checked, else 0.
    """
    with clear_failures(code=2):
        from cli.doctor.check import Level
        from cli.doctor.groups import findings
        from cli.doctor.installation.installation import read_installation
        from cli.doctor.output import show

        read = asyncio.run(read_installation(options, config, plugins, layout or ""))
        found = list(findings(read))
        show(found, output, verbose=verbose)
    bad = {Level.PROBLEM, Level.WARNING} if strict else {Level.PROBLEM}
    if any(each.level in bad for each in found):
        sys.exit(1)
