"""The command `moorage mcp`."""

import asyncio
import signal

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import GatewayOptions, gateway_options


@click.command()
@gateway_options
def mcp(*, options: GatewayOptions) -> None:
    """Answer an assistant's questions, by the Model Context Protocol on stdin and stdout.

    It has your rights at the gateway and in the cluster, and can only read. An assistant starts it
    by itself. It needs the extra moorage[mcp].
    """
    with clear_failures():
        from cli.assistant.server import serve

        # The thread that waits for stdin cannot be interrupted, and there is nothing to tidy up.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(serve(options))
