"""The embedded API server, as a process that has a cluster of the bench from its start.

python -m bench.processes.apiserver --port PORT --nodes COUNT --pods-per-node COUNT

Creating 150,000 pods over HTTP would take minutes.
"""

import asyncio
import itertools
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.processes import objects
from moorage_host.process.lifecycle import ProcessSettings, announce, process
from moorage_host.settings import parse_settings, setting
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.store import Store

NODES, PODS = "/nodes", "/pods"
"""The store's names of both collections."""

TICK = 0.02  # seconds between changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessSettings):
    """The process's options."""

    port: int = setting(0, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    nodes: int = setting(1000, "Nodes of the cluster.", minimum=1)
    pods_per_node: int = setting(30, "Pods that each node runs.", minimum=0)
    heartbeats: float = setting(0.0, "Nodes whose heartbeat changes in a second.", minimum=0)
    peers: bool = setting(False, "Give nodes what the extenders of others read.")
    changed_pods: float = setting(0.0, "Pods that are replaced in a second.", minimum=0)


async def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT."""
    with process("api-server", options) as stop:
        api = ApiServer(Settings(port=options.port))
        fill(api.cluster.store, options.nodes, options.pods_per_node, peers=options.peers)
        async with api:
            announce("serving", service="api-server", api=api.url)
            async with asyncio.TaskGroup() as group:
                life = group.create_task(_live(api.cluster.store, options))
                await stop.wait()
                life.cancel()


def fill(store: Store, nodes: int, pods_per_node: int, *, peers: bool = False) -> None:
    """Put a cluster into a store; *peers* is for the extenders of others."""
    for index in range(nodes):
        store.put(NODES, objects.peers_node(index) if peers else objects.node(index))
    for pod in objects.running_pods(nodes, pods_per_node):
        store.put(PODS, pod)


async def _live(store: Store, options: Options) -> None:
    """Change nodes and pods, one after the other, at the rates of the options."""
    due_nodes = due_pods = 0.0
    numbers = itertools.count()
    while True:
        await asyncio.sleep(TICK)
        due_nodes += options.heartbeats * TICK
        due_pods += options.changed_pods * TICK if options.pods_per_node else 0
        while due_nodes >= 1:
            due_nodes -= 1
            _beat(store, next(numbers) * 7919 % options.nodes)
        while due_pods >= 1:
            due_pods -= 1
            replace_pod(store, next(numbers), options.nodes)


def _beat(store: Store, index: int) -> None:
    node = objects.node(index)
    for condition in node["status"]["conditions"]:
        condition["lastHeartbeatTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    store.put(NODES, node)


def replace_pod(store: Store, number: int, nodes: int) -> None:
    """Delete a pod and create another in its place, on another node each time."""
    pod = objects.running_pod(number * 7919 % nodes, number // nodes % 4)
    metadata = pod["metadata"]
    store.remove(PODS, metadata["namespace"], metadata["name"])
    uid = f"{number:08x}-0000-4000-8000-000000000001"
    elsewhere = objects.node_name((number * 7919 + 1 + number // nodes) % nodes)
    spec = {**pod["spec"], "nodeName": elsewhere}
    store.put(PODS, {**pod, "metadata": {**metadata, "uid": uid}, "spec": spec})


if __name__ == "__main__":
    asyncio.run(serve(parse_settings(Options, "python -m bench.processes.apiserver")))
