"""The command `moorage shadow`."""

import asyncio

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.output import Form, output_option


@click.command()
@click.argument("profile", required=False, default="")
@output_option("all disagreements that the gateway keeps")
@gateway_options
def shadow(profile: str, output: Form, options: GatewayOptions) -> None:
    """Show how far the shadow of PROFILE, or of each, agrees with it, and where it does not.

    A shadow is a second profile that filters and scores the same pods and decides nothing; the
    policy has it as `shadow`.
    """
    with clear_failures():
        from cli.decisions.shadow.output import ask, show

        show(asyncio.run(ask(options, profile)), output)
