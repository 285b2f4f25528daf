"""The `moorage` command."""

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console

from cli.policies import resolved_policy
from cli.stack import StackOptions
from cli.up import Up, UpOptions, run_directory
from cli.workload import Workload, read_workload
from moorage.errors import ConfigurationError
from moorage.policy import ResolvedPolicy

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(exists=True, path_type=Path)
PORT = click.IntRange(0, 65535)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="moorage-apps", prog_name="moorage")
def main() -> None:
    """Kubernetes scheduling logic in Python, beside an unmodified kube-scheduler."""


@main.command()
@click.option("--nodes", default="3", metavar="N|FILE", help="Nodes: how many, or a file.")
@click.option("--pods", default="0", metavar="N|FILE", help="Pods: how many, or a file.")
@click.option("--scorers", default=1, type=click.IntRange(1, 64), help="Scorer replicas.")
@click.option("--config", type=FILE, help="The policy (MoorageConfiguration).")
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
@click.option("--kubeconfig", type=FILE, help="Use this cluster instead of an embedded one.")
@click.option("--once", is_flag=True, help="End with the result once all pods are decided on.")
@click.option("--timeout", default=120.0, help="Seconds that --once may take.", show_default=True)
@click.option("--extender-port", default=0, type=PORT, help="The extender's port; 0: a free one.")
@click.option("--admin-port", default=0, type=PORT, help="The admin port; 0: a free one.")
@click.option("--api-port", default=0, type=PORT, help="The API server's port; 0: a free one.")
def up(
    nodes: str,
    pods: str,
    scorers: int,
    config: Path | None,
    plugins: tuple[Path, ...],
    kubeconfig: Path | None,
    once: bool,
    timeout: float,
    extender_port: int,
    admin_port: int,
    api_port: int,
) -> None:
    """Start every process, schedule the pods, and show where each went and why.

    FILE holds manifests in YAML, or what `kubectl get nodes,pods -o json` (or yaml) prints of a
    real cluster; pods that were bound there stay bound.
    """
    console = Console(soft_wrap=False)
    try:
        policy = resolved_policy(config, plugins)
        workload = Workload() if kubeconfig else read_workload(nodes, pods, policy.profile_names)
        with run_directory() as directory:
            stack = StackOptions(
                directory=directory,
                kubeconfig=kubeconfig,
                config=config,
                profiles=policy.profile_names,
                plugins=plugins,
                scorers=scorers,
                extender_port=extender_port,
                admin_port=admin_port,
                api_port=api_port,
            )
            run = Up(console, stack, UpOptions(once=once, timeout=timeout))
            code = asyncio.run(run.run(workload))
    except* ConfigurationError as errors:
        for error in errors.exceptions:
            click.echo(f"moorage: {error}", err=True)
        code = 1
    sys.exit(code)


@main.group()
def config() -> None:
    """Check and show policies."""


@config.command()
@click.argument("file", type=FILE)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def validate(file: Path, plugins: tuple[Path, ...]) -> None:
    """Check FILE against the plugins of this machine; say what is wrong and where."""
    policy = _resolved(file, plugins)
    for warning in policy.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"{file}: valid, profiles: {', '.join(policy.profile_names)}")


@config.command()
@click.argument("file", type=FILE, required=False)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def show(file: Path | None, plugins: tuple[Path, ...]) -> None:
    """Print the effective policy of FILE, or the default one, with everything filled in."""
    click.echo(_resolved(file, plugins).to_yaml(), nl=False)


def _resolved(file: Path | None, plugins: tuple[Path, ...]) -> ResolvedPolicy:
    try:
        return resolved_policy(file, plugins)
    except ConfigurationError as error:
        click.echo(f"moorage: {error}", err=True)
        sys.exit(1)
