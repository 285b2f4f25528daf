"""The commands `moorage config ...`."""

import re
import sys
from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.given import GivenPlugin, GivenPluginType, weights_of

GATEWAY_URL = "https://gateway.moorage.svc:8888"
"""The gateway's Service as it is deployed."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
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
        from cli.config.validation import summary, validate_files

        findings = validate_files(files, plugins)
    for finding in findings:
        for line in (*finding.mistakes, *finding.notes):
            click.echo(line, err=True)
        if not finding.mistakes:
            click.echo(f"{finding.file}: valid, profiles: {', '.join(finding.profiles)}")
    if any(finding.mistakes for finding in findings):
        click.echo(summary(findings), err=True)
        sys.exit(1)


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
        click.echo(f"Note: {note}", err=True)
    click.echo(policy.resolved.to_yaml(), nl=False)


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

    It has only the verbs that the enabled plugins need, and comments with what each of them costs.
    """
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
        raise click.BadParameter(f"{url!r} is not of the form http://HOST:PORT", param_hint="--url")
    with clear_failures():
        from cli.config.extender import extender_yaml, plan_entries
        from cli.config.policies import choose_policy

        policy = choose_policy(file, plugins)
        entries = plan_entries(policy.resolved, ignorable=ignorable)
    for note in policy.notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(extender_yaml(entries, url, policy.resolved.score_scale), nl=False)
