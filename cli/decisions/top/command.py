"""The command `moorage top`."""

import asyncio
from contextlib import suppress

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.output import Form, output_option


@click.command()
@click.option("--once", is_flag=True, help="Show one interval and end.")
@output_option("all plugins and replicas")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2.0,
    show_default=True,
    help="Seconds that each view is about.",
)
@gateway_options
def top(*, once: bool, output: Form, interval: float, options: GatewayOptions) -> None:
    """Show what a gateway is doing now: cycles, latency, plugins, replicas, newest pods.

    Live on a terminal, until Ctrl-C; elsewhere a view an interval. Of a pod the newest attempt is
    shown. With -o json there is one line an interval, with -o yaml one document.
    """
    with clear_failures(), suppress(KeyboardInterrupt):
        from cli.decisions.top.watching import watch

        asyncio.run(watch(options, once=once, output=output, interval=interval))
