"""The command `moorage bind`."""

import asyncio
from pathlib import Path

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import context_option, kubeconfig_option
from cli.shared.given import namespace_and_name, namespace_option


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.argument("node")
@namespace_option
@kubeconfig_option
@context_option
@click.option(
    "--timeout",
    default=10.0,
    type=click.FloatRange(0.5),
    show_default=True,
    help="Seconds to try for when the API server has trouble.",
)
def bind(
    pod: str, node: str, namespace: str, kubeconfig: Path | None, context: str, timeout: float
) -> None:
    """Bind a pod to NODE by hand; no scheduler is asked.

    Nothing is checked but that the pod and the node exist and that the pod may be bound. Bind
    plugins do not run. Pods are best kept from schedulers by a schedulerName that nobody serves.
    """
    with clear_failures():
        from cli.bind.binding import bind_pod

        names = namespace_and_name(pod, namespace, kubeconfig, context)
        click.echo(asyncio.run(bind_pod(*names, node, kubeconfig, context, timeout)))
