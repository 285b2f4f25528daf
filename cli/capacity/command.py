"""The command `moorage capacity`."""

import asyncio

import click

from cli.capacity import DEFAULT_LIMITS, RequestLimits
from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options


@click.command()
@click.option(
    "--autoscaler",
    type=click.Choice(["karpenter", "cluster-autoscaler"]),
    default="karpenter",
    show_default=True,
    help="Who adds nodes.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 10_000),
    default=DEFAULT_LIMITS.most,
    show_default=True,
    help="Requests for nodes that may be open at a time.",
)
@click.option(
    "--most-per-namespace",
    type=click.IntRange(1, 10_000),
    default=DEFAULT_LIMITS.most_per_namespace,
    show_default=True,
    help="The same of one namespace.",
)
@click.option(
    "--pause",
    type=click.FloatRange(min=0, max=86_400),
    default=DEFAULT_LIMITS.pause,
    show_default=True,
    help="Seconds for which a namespace asks for nothing after a request in vain.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=86_400),
    default=DEFAULT_LIMITS.timeout,
    show_default=True,
    help="Seconds after which a request is taken back that brings no node.",
)
@gateway_options
def capacity(
    *,
    autoscaler: str,
    most: int,
    most_per_namespace: int,
    pause: float,
    timeout: float,
    options: GatewayOptions,
) -> None:
    """Ask an autoscaler for nodes where only a rule of Moorage stands in the way; until Ctrl-C.

    Plugins say which rejections a new node cures: `Rejection(..., cured_by="capacity")`. For pods
    that nothing else keeps waiting a placeholder pod asks for a node, and goes when one has come.
    """
    with clear_failures():
        from cli.capacity.running import run_until_signal

        limits = RequestLimits(
            most=most, most_per_namespace=most_per_namespace, pause=pause, timeout=timeout
        )
        asyncio.run(run_until_signal(options, autoscaler=autoscaler, limits=limits))
