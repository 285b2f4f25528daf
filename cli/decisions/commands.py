"""The commands that read what a gateway has decided: `explain`, `dashboard` and `shadow`."""

import asyncio
from contextlib import suppress

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
    help="Explain every pod without a node, of all namespaces or of --namespace.",
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
            from cli.decisions.explain import ask_pending
            from cli.decisions.explain_output import show_pending

            show_pending(*asyncio.run(ask_pending(namespace, options)), output)
            return
        from cli.decisions.explain import explained
        from cli.decisions.explain_output import show

        names = namespace_and_name(pod, namespace, options.kubeconfig, options.context)
        show(asyncio.run(explained("/".join(names), node or "", options)), output)


@click.command()
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@gateway_options
def dashboard(*, no_browser: bool, options: GatewayOptions) -> None:
    """Open the inspector in a browser: which pod is where, and why.

    It is served on this machine until Ctrl-C, with your rights at the gateway, to whoever has its
    address, which nobody can guess. The page can only read.
    """
    with clear_failures(), suppress(KeyboardInterrupt):
        from cli.decisions.dashboard import run

        asyncio.run(run(options, opens=not no_browser))


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
        from cli.decisions.shadow import ask, show

        show(asyncio.run(ask(options, profile)), output)
