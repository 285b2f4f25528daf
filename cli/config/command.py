"""The commands `moorage config ...`."""

from pathlib import Path

import click

from cli.failures import clear_failures

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(exists=True, path_type=Path)


@click.group()
def config() -> None:
    """Check and show policies."""


@config.command()
@click.argument("file", type=FILE)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def validate(file: Path, plugins: tuple[Path, ...]) -> None:
    """Check FILE against the plugins of this machine; say what is wrong and where."""
    with clear_failures():
        from cli.config.policies import choose_policy

        policy = choose_policy(file, plugins)
    for note in policy.notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(f"{file}: valid, profiles: {', '.join(policy.resolved.profile_names)}")


@config.command()
@click.argument("file", type=FILE, required=False)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def show(file: Path | None, plugins: tuple[Path, ...]) -> None:
    """Print the effective policy of FILE with everything filled in.

    Without FILE the profile moorage has just the plugins of --plugin, as `moorage up` runs it.
    """
    with clear_failures():
        from cli.config.policies import choose_policy

        policy = choose_policy(file, plugins)
    for note in policy.notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(policy.resolved.to_yaml(), nl=False)
