"""First figures: filter and prioritize over loopback, interleaved with the floor (bench/floor.py).

Run as `python -m bench.first_figures [ROUNDS]`. One connection, one call at a time, as
kube-scheduler does. Prints milliseconds and ratios; the ratios are what counts.
"""

import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cli.cluster import connected
from cli.processes import Processes
from cli.stack import Addresses, StackOptions, start_stack
from cli.workload import Workload

SIZES = (500, 5000)
WARM_UP = 20


def pod(number: int) -> dict[str, object]:
    requests = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    return {
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"uid-{number}"},
        "spec": {
            "schedulerName": "moorage",
            "containers": [{"name": "c", "image": "nginx:1.27", "resources": requests}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
    }


def node(number: int) -> dict[str, object]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:04}", "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


class Caller:
    """kube-scheduler's manners: one kept connection, one call at a time."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address)

    def call(self, verb: str, body: bytes) -> tuple[float, bytes]:
        start = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"/{verb}", body, headers)
        answer = self._connection.getresponse().read()
        return time.perf_counter() - start, answer


def measure(
    callers: dict[str, Caller], size: int, rounds: int
) -> dict[tuple[str, str], list[float]]:
    names = [f"node-{i:04}" for i in range(size)]
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds + WARM_UP):
        body = json.dumps({"Pod": pod(number), "Nodes": None, "NodeNames": names}).encode()
        for who, caller in callers.items():
            for verb in ("filter", "prioritize"):
                seconds, answer = caller.call(verb, body)
                assert b"node-0001" in answer, answer[:200]
                if number >= WARM_UP:
                    times.setdefault((who, verb), []).append(seconds)
    return times


def report(size: int, times: dict[tuple[str, str], list[float]]) -> Table:
    table = Table(
        "verb", "who", "p50 ms", "p99 ms", "p50 x floor", "p99 x floor", title=f"{size} names"
    )
    for verb in ("filter", "prioritize"):
        floor = percentiles(times["floor", verb])
        for who in ("floor", "moorage"):
            mine = percentiles(times[who, verb])
            ratios = [f"{a / b:.2f}" for a, b in zip(mine, floor, strict=True)]
            table.add_row(verb, who, *(f"{1000 * t:.2f}" for t in mine), *ratios)
    return table


def percentiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


async def run(rounds: int) -> None:
    console = Console()
    processes = Processes(console.print)
    floor = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("floor.py"))],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert floor.stdout is not None
    try:
        addresses = await _start(processes, console)
        callers = {
            "floor": Caller(f"127.0.0.1:{int(floor.stdout.readline())}"),
            "moorage": Caller(addresses.extender.removeprefix("http://")),
        }
        for size in SIZES:
            console.print(report(size, await asyncio.to_thread(measure, callers, size, rounds)))
    finally:
        floor.terminate()
        await processes.stop()


async def _start(processes: Processes, console: Console) -> Addresses:
    directory = Path(tempfile.mkdtemp(prefix="moorage-bench-"))
    options = StackOptions(
        directory=directory, kubeconfig=None, config=None, profiles=("moorage",), plugins=()
    )
    addresses = await start_stack(options, processes)
    console.print(f"Creating {max(SIZES)} nodes ...")
    async with connected(addresses.api) as cluster:
        await cluster.create(Workload(nodes=[node(i) for i in range(max(SIZES))]), lambda: None)
    caller = Caller(addresses.extender.removeprefix("http://"))
    body = json.dumps({"Pod": pod(0), "NodeNames": [f"node-{max(SIZES) - 1:04}"]}).encode()
    while b'"Error":""' not in (answer := caller.call("filter", body)[1]) or b"not known" in answer:
        await asyncio.sleep(0.1)
    return addresses


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
