"""The command `moorage explain`."""

import asyncio

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.given import namespace_and_name, namespace_option, output_option


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@namespace_option
@click.option("--node", help="Why not this node, or why this one?")
@output_option("wide", "json", "yaml", more="wide shows every attempt that the gateway keeps.")
@gateway_options
def explain(
    pod: str,
    namespace: str,
    node: str | None,
    output: str,
    options: GatewayOptions,
) -> None:
    """Explain why a pod is on its node, or why it has none.

    The first line is the reason that decided. Then come the evidence and what would have to
    change. Pods that never reached Moorage are explained too. With --admin and without a kubeconfig
    there is what the gateway knows.
    """
    with clear_failures():
        from cli.decisions.explain.output import show
        from cli.decisions.explain.sources import explained

        names = namespace_and_name(pod, namespace, options.kubeconfig)
        show(asyncio.run(explained("/".join(names), node or "", options)), output)
