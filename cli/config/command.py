"""The commands `moorage config ...`."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from cli.shared.given import GivenPlugin, GivenPluginType, weights_of
from cli.shared.output import echo

if TYPE_CHECKING:
    from cli.config.policies import Registries

GATEWAY_URL = "https://gateway.moorage.svc:8888"
"""The gateway's Service as it is deployed."""

PATH = click.Path(exists=True, path_type=Path)
POLICY = click.Path(dir_okay=False, path_type=Path)
"""Need not exist: what is wrong with the other files is reported too."""


@click.group()
def config() -> None:
    """Check and show policies, and what kube-scheduler needs for them."""


@config.command()
@click.argument("files", metavar="FILE...", type=POLICY, nargs=-1, required=True)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def validate(files: tuple[Path, ...], plugins: tuple[Path, ...]) -> None:
    """Check each FILE against the plugins of this machine; print every mistake with its place.

    The exit code is 1 if there is a mistake.
    """
    with clear_failures():
        from cli.config.policies import load_registries

        registries = load_registries(plugins)
    wrong = [(file, mistakes) for file in files if (mistakes := _checked(file, registries))]
    if wrong:
        count = sum(mistakes for _, mistakes in wrong)
        where = f"{files[0]}" if len(files) == 1 else f"{len(wrong)} of {len(files)} files"
        echo(f"{count} mistake{'s' * (count != 1)} in {where}", err=True)
        sys.exit(1)


def _checked(file: Path, registries: "Registries") -> int:
    """Print what was found out about a file; return the number of mistakes."""
    from cli.config.policies import resolve_file, unused_plugins
    from moorage.errors import ConfigurationError

    try:
        policy = resolve_file(file, registries)
    except ConfigurationError as error:
        echo(error, err=True)
        return len(str(error).splitlines())
    for warning in policy.warnings:  # it begins with its file and line
        line, _, text = warning.removeprefix(f"{file}:").partition(": ")
        echo(f"{file}:{line}: note: {text}", err=True)
    for text in unused_plugins(policy, registries):
        echo(f"{file}:1: note: plugin {text}", err=True)
    echo(f"{file}: valid, profiles: {', '.join(policy.profile_names)}")
    return 0


@config.command()
@click.argument("file", type=FILE, required=False)
@click.option(
    "--plugin",
    "plugins",
    type=GivenPluginType(),
    multiple=True,
    help="A Python file or folder; =WEIGHT as for `moorage up`.",
)
def show(file: Path | None, plugins: tuple[GivenPlugin, ...]) -> None:
    """Print the effective policy of FILE with everything filled in.

    Without FILE the profile moorage has just the plugins of --plugin, as `moorage up` runs it.
    """
    with clear_failures():
        from cli.config.policies import choose_policy

        policy = choose_policy(file, [each.path for each in plugins], weights_of(plugins))
    for note in policy.notes:
        echo(f"Note: {note}", err=True)
    echo(policy.resolved.to_yaml(), nl=False)


@config.command()
@click.argument("file", type=FILE)
@click.option(
    "--url",
    metavar="URL",
    default=GATEWAY_URL,
    show_default=True,
    help="Where kube-scheduler finds Moorage's gateway.",
)
@click.option(
    "--ignorable",
    is_flag=True,
    help="Place pods without Moorage while it is down, instead of making them wait.",
)
@click.option("--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder.")
def extender(file: Path, url: str, ignorable: bool, plugins: tuple[Path, ...]) -> None:
    """Print the extender entry of kube-scheduler's configuration that FILE needs.

    It has only the verbs that the enabled plugins need, with comments.
    """
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
        raise click.BadParameter(f"{url!r} is not of the form http://HOST:PORT", param_hint="--url")
    with clear_failures():
        from cli.config.extender import extender_yaml, plan_entries
        from cli.config.policies import choose_policy

        policy = choose_policy(file, plugins)
        entries = plan_entries(policy.resolved, ignorable=ignorable)
    for note in policy.notes:
        echo(f"Note: {note}", err=True)
    echo(extender_yaml(entries, url, policy.resolved.score_scale), nl=False)
