"""The command `moorage gate`."""

import asyncio
from contextlib import suppress

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options


@click.command()
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=5.0,
    show_default=True,
    help="Seconds from one look to the next.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=3600),
    default=60.0,
    show_default=True,
    help="Seconds to wait at most for a released group to be bound before the next one.",
)
@gateway_options
def gate(*, once: bool, interval: float, timeout: float, options: GatewayOptions) -> None:
    """Hold pods of groups at their gate until the whole group fits; runs until Ctrl-C.

    Pods are created with the scheduling gate `moorage.io/group` and the labels of the plugin Gang.
    One group after the other is let go, in Gang's order. No pod is pinned to a node.
    """
    with clear_failures(), suppress(KeyboardInterrupt):
        from cli.gate.gating import run

        asyncio.run(run(options, once=once, interval=interval, timeout=timeout))
