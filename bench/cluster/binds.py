"""Binds on a real API server, by many at once: kube-scheduler's own, and Moorage's."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import msgspec

from bench.cluster.cases import MOORAGE
from bench.cluster.control_plane import ControlPlane
from bench.cluster.pods import Batch
from bench.figures import figure
from bench.processes.goprograms import BINDER
from bench.processes.objects import Object, node_name
from bench.processes.policies import BATCH
from bench.processes.stacks import Bench
from bench.results import BindResult

IN_FLIGHT: Mapping[int, int] = {1: 200, 32: 1000, 256: 1500}
"""How many pods are bound, by how many at once."""

OWN_BINDER = "kube-scheduler's own"


class _Binds(msgspec.Struct):
    nanoseconds: list[int]
    total: int
    failures: int
    failure: str


async def measure(
    bench: Bench,
    plane: ControlPlane,
    moorage: str,
    nodes: int,
    progress: Callable[[str], None],
) -> list[BindResult]:
    """Bind with each, with few and with many binds in flight."""
    binder = await bench.program(BINDER, f"-kubeconfig={plane.kubeconfig}")
    found: list[BindResult] = []
    for in_flight, count in IN_FLIGHT.items():
        for name, url in ((OWN_BINDER, ""), (MOORAGE, moorage)):
            batch = Batch(prefix="bind", profile=BATCH, waiting=count)
            uids = await plane.create_pods(batch.build(0, count))
            pods = list(_placed(uids, nodes))
            job = {"extender": url, "namespace": "default", "inFlight": in_flight, "pods": pods}
            binds = await _ask(binder, job)
            progress(f"binds: {name}, {in_flight} in flight: {binds.failures} failures")
            found.append(_result(name, in_flight, binds))
            await plane.delete_pods()
    return found


def _placed(pods: Mapping[str, str], nodes: int) -> Iterator[Object]:
    for number, (name, uid) in enumerate(pods.items()):
        yield {"name": name, "uid": uid, "node": node_name(number % nodes)}


async def _ask(binder: asyncio.subprocess.Process, job: Object) -> _Binds:
    assert binder.stdin is not None
    assert binder.stdout is not None
    binder.stdin.write(msgspec.json.encode(job) + b"\n")
    line = await binder.stdout.readline()
    return msgspec.json.decode(line, type=_Binds)


def _result(name: str, in_flight: int, binds: _Binds) -> BindResult:
    if not binds.nanoseconds:
        raise RuntimeError(f"{name} binds nothing: {binds.failure}")
    return BindResult(
        contender=name,
        in_flight=in_flight,
        latency=figure(value / 1e6 for value in binds.nanoseconds),
        binds_per_second=len(binds.nanoseconds) / (binds.total / 1e9),
        failures=binds.failures,
    )
