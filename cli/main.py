"""The `moorage` command."""

import sys
from typing import Any

import click

from cli.assistant.command import mcp
from cli.capacity.command import capacity
from cli.certs.command import certs
from cli.config.command import config
from cli.decisions.commands import dashboard, explain, shadow
from cli.doctor.command import doctor
from cli.gate.command import gate
from cli.legacy.command import convert_policy
from cli.shared.failures import full_disk
from cli.shared.files import reason_of
from cli.shared.interrupts import INTERRUPTED
from cli.shared.output import echo
from cli.skeleton.command import new_plugin
from cli.up.command import up
from cli.whatif.simulate.command import simulate

# The commands import what they need themselves: help is there at once, and Ctrl-C works during
# the imports, which take a second.


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
def completion(shell: str) -> None:
    """Print what completes the words of this command in SHELL: bash, zsh or fish.

    For bash: source <(moorage completion bash)
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None  # noqa: S101 - click knows these
    echo(script(main, {}, "moorage", "_MOORAGE_COMPLETE").source())


GROUPS = {
    "Look at a gateway": (explain, dashboard, shadow, doctor, mcp),
    "Write and try plugins": (new_plugin, up, simulate),
    "Set up": (config, certs, convert_policy, completion),
    "Run beside a scheduler": (gate, capacity),
}
"""The commands as `--help` shows them."""


class _Commands(click.Group):
    """Shows commands in groups, each with its whole first sentence."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command; a disk that is full, also that of stdout, is worth a sentence."""
        try:
            return super().main(*args, **extra)
        except Exception as error:
            full = full_disk(error)
            if full is None:
                raise
            where = f" {full.filename}" if full.filename else ""
            echo(f"moorage: cannot write{where}: {reason_of(full)}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C is no failure of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        del ctx
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(each.name or "", each.get_short_help_str(limit=1000)) for each in commands]
                )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="moorage", prog_name="moorage")
def main() -> None:
    """Kubernetes scheduling logic in Python, beside an unmodified kube-scheduler."""


for commands in GROUPS.values():
    for command in commands:
        main.add_command(command)
