"""The `moorage` command."""

import click

from cli.bind.command import bind
from cli.certs.command import certs
from cli.config.command import config
from cli.conformance.command import conformance
from cli.decisions.explain.command import explain
from cli.decisions.shadow.command import shadow
from cli.decisions.top.command import top
from cli.doctor.command import doctor
from cli.legacy.command import convert_policy
from cli.skeleton.command import new_plugin
from cli.up.command import up
from cli.whatif.replay_command import journal, replay
from cli.whatif.simulate.command import simulate

# The commands import what they need themselves: help is there at once, and Ctrl-C works during
# the imports, which take a second.


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="moorage", prog_name="moorage")
def main() -> None:
    """Kubernetes scheduling logic in Python, beside an unmodified kube-scheduler."""


for command in (
    bind,
    certs,
    config,
    conformance,
    convert_policy,
    doctor,
    explain,
    journal,
    new_plugin,
    replay,
    shadow,
    simulate,
    top,
    up,
):
    main.add_command(command)
