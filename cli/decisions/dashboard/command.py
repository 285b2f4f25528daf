"""The command `moorage dashboard`."""

import asyncio
from contextlib import suppress

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options


@click.command()
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@gateway_options
def dashboard(*, no_browser: bool, options: GatewayOptions) -> None:
    """Open the inspector in a browser: which pod is where, and why.

    It is served on this machine until Ctrl-C, with your rights at the gateway, to whoever has its
    address, which nobody can guess. The page can only read.
    """
    with clear_failures(), suppress(KeyboardInterrupt):
        from cli.decisions.dashboard.serving import run

        asyncio.run(run(options, opens=not no_browser))
