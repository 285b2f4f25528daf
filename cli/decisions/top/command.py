"""The command `moorage top`."""

import asyncio
from contextlib import suppress

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.given import output_option


@click.command()
@click.option("--once", is_flag=True, help="Show one interval and end.")
@output_option("json", more="json writes one line an interval.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2.0,
    show_default=True,
    help="Seconds that each view is about.",
)
@gateway_options
def top(*, once: bool, output: str, interval: float, options: GatewayOptions) -> None:
    """Show what a gateway is doing now: cycles, latency, plugins, replicas, newest pods.

    Live on a terminal, until Ctrl-C; elsewhere a view an interval.
    """
    with clear_failures(), suppress(KeyboardInterrupt):
        from cli.decisions.top.watching import watch

        asyncio.run(watch(options, once=once, as_json=output == "json", interval=interval))
