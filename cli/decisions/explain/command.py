"""The command `moorage explain`."""

import asyncio

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options
from cli.shared.given import namespace_and_name, namespace_option
from cli.shared.output import Form, output_option


@click.command()
@click.argument("pod", metavar="[[NAMESPACE/]POD]", default="")
@namespace_option
@click.option("--node", help="Why not this node, or why this one?")
@click.option(
    "--pending",
    is_flag=True,
    help="Of all pods without a node, or of those in --namespace, why each has none.",
)
@output_option("every attempt that the gateway keeps; with --pending what helps each pod")
@gateway_options
def explain(
    *,
    pod: str,
    namespace: str,
    node: str | None,
    pending: bool,
    output: Form,
    options: GatewayOptions,
) -> None:
    """Explain why a pod is on its node, or why it has none.

    The first line is the reason that decided. Then come the evidence and what would have to
    change. Pods that never reached Moorage are explained too. With --admin and without a kubeconfig
    there is what the gateway knows.
    """
    if pending == bool(pod):
        raise click.UsageError("give a POD, or --pending for all pods without a node")
    if pending and node:
        raise click.UsageError("--node is about one POD, not about --pending")
    with clear_failures():
        if pending:
            from cli.decisions.explain.pending import ask
            from cli.decisions.explain.pending import show as show_pending

            show_pending(asyncio.run(ask(namespace, options)), output)
            return
        from cli.decisions.explain.output import show
        from cli.decisions.explain.sources import explained

        names = namespace_and_name(pod, namespace, options.kubeconfig, options.context)
        show(asyncio.run(explained("/".join(names), node or "", options)), output)
