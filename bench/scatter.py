"""When several scorers are faster than one: the score half of cycles, scattered and whole.

Run as `python -m bench.scatter [ROUNDS]`. Plugins spin for so many microseconds for each node. One
gateway has one scorer, another two, a third three; all are asked in turn, so only the ratios count.
Two more columns are the same with the settings' defaults, which scatter only what is worth it.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from gateway.app import running
from gateway.settings import GatewaySettings
from sandbox.apiserver import ApiServer
from sandbox.apiserver.paths import parse

SIZES = (500, 5000)
COSTS = (0.1, 1.0, 10.0)
REPLICAS = (1, 2, 3)
WARM_UP = 15

PLUGIN = '''
import time
import numpy as np
from moorage import Arguments, ScorePlugin

class Spins(ScorePlugin):
    """Takes its time."""

    class Args(Arguments):
        microseconds: float = 1.0

    def score(self, pod, nodes):
        end = time.perf_counter() + self.args.microseconds * len(nodes) / 1e6
        while time.perf_counter() < end:
            pass
        return nodes.rows % 101.0
'''

PROFILE = """
- schedulerName: cost-{0}
  plugins: {{score: {{disabled: [{{name: '*'}}], enabled: [{{name: Spins}}]}}}}
  pluginConfig: [{{name: Spins, args: {{microseconds: {0}}}}}]
"""


@asynccontextmanager
async def service(name: str, *options: str) -> AsyncIterator[str]:
    """Run a service as a process; give its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"services.{name}", "--host=127.0.0.1", "--port=0"),
        *("--admin-host=127.0.0.1", "--admin-port=0", "--log-level=warning", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield msgspec.json.decode(await process.stdout.readline())["grpc"]
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def gateways(directory: Path, server: ApiServer) -> AsyncIterator[Mapping[str, str]]:
    """Run a gateway for each number of scorers, and two that decide; give their addresses."""
    kubeconfig, policy = directory / "kubeconfig", directory / "policy.yaml"
    kubeconfig.write_text(server.kubeconfig())
    head = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:"
    policy.write_text(head + "".join(PROFILE.format(cost) for cost in COSTS))
    (directory / "spins.py").write_text(PLUGIN)
    async with AsyncExitStack() as stack:
        plugin = f"--plugin={directory / 'spins.py'}"
        filters = await stack.enter_async_context(service("filter"))
        scorers = [
            await stack.enter_async_context(service("scorer", plugin)) for _ in range(REPLICAS[-1])
        ]

        async def start(count: int, **settings: Any) -> str:
            started = GatewaySettings(
                extender_host="127.0.0.1",
                extender_port=0,
                admin_host="127.0.0.1",
                admin_port=0,
                shutdown_delay=0,
                http_drain_time=0,
                filter=(filters,),
                scorer=tuple(scorers[:count]),
                kubeconfig=kubeconfig,
                config=policy,
                **settings,
            )
            registry = CollectorRegistry()
            gateway = await stack.enter_async_context(running(started, registry))
            while (
                registry.get_sample_value("moorage_replicas_ready", {"service": "scorer"}) != count
            ):
                await asyncio.sleep(0.05)
            return gateway.extender

        always = {"min_nodes_per_shard": 1, "min_shard_time": 0.0}
        yield {
            **{f"{count}": await start(count, **always) for count in REPLICAS},
            **{f"{count}, defaults": await start(count) for count in REPLICAS[1:]},
        }


def node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    metadata = {"name": f"node-{number:04}"}
    status = {"allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


async def measure(
    session: aiohttp.ClientSession,
    addresses: Mapping[str, str],
    size: int,
    cost: float,
    rounds: int,
) -> Mapping[str, float]:
    """Return the median of a prioritize call in milliseconds, by gateway."""
    names = [f"node-{i:04}" for i in range(size)]
    times: dict[str, list[float]] = {who: [] for who in addresses}
    for number in range(rounds + WARM_UP):
        pod = {
            "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"uid-{number}"},
            "spec": {"schedulerName": f"cost-{cost}", "containers": [{"name": "c"}]},
        }
        body = msgspec.json.encode({"Pod": pod, "NodeNames": names})
        for who, address in addresses.items():
            start = time.perf_counter()
            async with session.post(f"http://{address}/prioritize", data=body) as response:
                answer = await response.read()
            if number >= WARM_UP:
                times[who].append(time.perf_counter() - start)
            assert answer != b"[]\n", "no scores"
    return {who: 1000 * statistics.median(each) for who, each in times.items()}


async def run(rounds: int) -> None:
    console = Console()
    table = Table("nodes", "us/node", "1: p50 ms", title="prioritize, by number of scorers")
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-")))
        server = await stack.enter_async_context(ApiServer())
        for number in range(max(SIZES)):
            obj = node(number)
            server.cluster.create(parse(f"/api/v1/nodes/{obj['metadata']['name']}"), obj)
        addresses = await stack.enter_async_context(gateways(directory, server))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for who in list(addresses)[1:]:
            table.add_column(f"{who}: p50 ms (x 1)")
        for size in SIZES:
            for cost in COSTS:
                medians = await measure(session, addresses, size, cost, rounds)
                one = medians["1"]
                others = [f"{t:.2f} ({t / one:.2f})" for t in list(medians.values())[1:]]
                table.add_row(f"{size}", f"{cost:g}", f"{one:.2f}", *others)
    console.print(table)


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
