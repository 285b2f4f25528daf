"""The command `moorage explain`."""

import asyncio
from pathlib import Path
from typing import Literal

import click

from cli.failures import clear_failures

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("pod", metavar="NAMESPACE/POD")
@click.option("--node", help="Why not this node, or why this one?")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="wide shows every attempt that the gateway keeps.",
)
@click.option(
    "--admin",
    default="http://localhost:9090",
    envvar="MOORAGE_ADMIN",
    show_default=True,
    help="The gateway's admin port. In a cluster: kubectl port-forward service/gateway 9090.",
)
@click.option(
    "--tls",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For https://: folder with an operator's tls.crt, tls.key and ca.crt.",
)
@click.option(
    "--ca-file",
    type=FILE,
    help="For https:// without --tls: ca.crt of the gateway. You are known by a bearer token then.",
)
@click.option(
    "--token-file", type=FILE, help="A bearer token instead of that of the kubeconfig's user."
)
@click.option(
    "--kubeconfig",
    type=FILE,
    help="How to reach the cluster. Without it: KUBECONFIG, else ~/.kube/config.",
)
def explain(
    pod: str,
    node: str | None,
    output: Literal["text", "wide", "json", "yaml"],
    admin: str,
    tls: Path | None,
    ca_file: Path | None,
    token_file: Path | None,
    kubeconfig: Path | None,
) -> None:
    """Explain why a pod is on its node, or why it has none.

    The first line is the reason that decided. Then come the evidence and what would have to
    change. Pods that never reached Moorage are explained too.
    """
    with clear_failures():
        from cli.explain.causes import explanation
        from cli.explain.gateway import AdminPort
        from cli.explain.output import show
        from cli.explain.sources import read

        port = AdminPort(url=admin, tls=tls, ca_file=ca_file, token_file=token_file)
        facts = asyncio.run(read(pod, node or "", port, kubeconfig))
        show(explanation(facts), output)
