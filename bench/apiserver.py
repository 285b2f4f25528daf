"""The embedded API server, as a process that has a cluster of the bench from its start.

python -m bench.apiserver --port PORT --nodes COUNT --pods-per-node COUNT

Creating 150,000 pods over HTTP would take minutes, and nobody measures that.
"""

import asyncio
from dataclasses import dataclass

from bench import clusters
from moorage.rpc.process import ProcessSettings, announce, process
from moorage.settings import parse_settings, setting
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessSettings):
    """The process's options."""

    port: int = setting(0, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    nodes: int = setting(1000, "Nodes of the cluster.", minimum=1)
    pods_per_node: int = setting(30, "Pods that each node runs.", minimum=0)


async def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT."""
    with process("api-server", options) as stop:
        api = ApiServer(Settings(port=options.port))
        fill(api.cluster.store, options.nodes, options.pods_per_node)
        async with api:
            announce("serving", service="api-server", api=api.url)
            await stop.wait()


def fill(store: Store, nodes: int, pods_per_node: int) -> None:
    """Put a cluster into a store."""
    for node in clusters.nodes(nodes):
        store.put("/nodes", node)
    for pod in clusters.running_pods(nodes, pods_per_node):
        store.put("/pods", pod)


if __name__ == "__main__":
    asyncio.run(serve(parse_settings(Options, "python -m bench.apiserver")))
