"""Runs the API server as a process of its own.

python -m sandbox.apiserver --port 0 --kubeconfig-out FILE
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from moorage.rpc.process import announce
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    options = _parser().parse_args(arguments)
    settings = Settings(host=options.host, port=options.port, run_bound_pods=options.run_bound_pods)
    try:
        asyncio.run(_serve(settings, options.kubeconfig_out))
    except OSError as error:
        sys.stderr.write(f"cannot serve on {options.host}:{options.port}: {error}\n")
        return 1
    return 0


async def _serve(settings: Settings, kubeconfig: Path | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ApiServer(settings) as api:
        if kubeconfig:
            kubeconfig.write_text(api.kubeconfig())  # noqa: ASYNC240 - before any request
        announce("serving", service="api-server", api=api.url)
        await stop.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.apiserver", description="A small Kubernetes API server, in memory."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one (default)")
    parser.add_argument(
        "--kubeconfig-out", type=Path, metavar="FILE", help="write a kubeconfig for kubectl here"
    )
    parser.add_argument(
        "--run-bound-pods", action="store_true", help="play the kubelet: bound pods become Running"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
