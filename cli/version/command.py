"""The command `moorage version`."""

import asyncio
from typing import Literal

import click
from click.core import ParameterSource

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options

_PLACES = ("admin", "gateway", "tls", "ca_file", "token_file", "kubeconfig")
"""The options that lead to a gateway."""


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The form of the output.",
)
@gateway_options
def version(*, output: Literal["text", "json"], options: GatewayOptions) -> None:
    """Show the version of this command, and of a gateway, its replicas and its binders.

    The gateway is asked if any option says where it is: --admin, --gateway, --kubeconfig ...
    """
    given = click.get_current_context().get_parameter_source
    asks = any(given(name) not in (None, ParameterSource.DEFAULT) for name in _PLACES)
    with clear_failures():
        from cli.version.versions import as_json, as_text, asked, client

        rows, problem = [client()], None
        if asks:
            found, problem = asyncio.run(asked(options))
            rows += found
        click.echo(as_json(rows) if output == "json" else as_text(rows))
        if problem is not None:
            raise problem
