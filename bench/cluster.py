"""A real kube-scheduler and API server: pods a second, and binds.

Without extender, with the Go extender that does nothing (or nothing but bind), and with Moorage: by
the configuration that kube-scheduler is deployed with, in turn, several times. Pods are equal, as
those of a Deployment, but for one contender, whose pods are unlike.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import aiohttp
import msgspec

from bench import edge
from bench.clusters import Object, node_name
from bench.contenders import Bench, GoExtender, opened
from bench.figures import Figure, figure
from bench.goprograms import BINDER, NOTHING
from bench.load import Pods
from bench.policies import policy, profile_name
from bench.realcluster import RealCluster, started
from bench.results import BindResult, Results, SchedulingResult
from tests.e2e import build
from tests.scenarios.planes import shipped_config

NODES = 5000
PODS = 1000
SECONDS = 30.0
"""After which a run ends, whatever is left of its pods."""

SAMPLING: Mapping[str, int] = {"default": 0, "100 %": 100}
"""percentageOfNodesToScore by what it is called."""

REPEATS: Mapping[str, int] = {"default": 10, "100 %": 2}
"""Runs of each: the shorter ones differ by a tenth from one to the next, and some by more."""

PROFILE = profile_name("batch", 3)
IN_FLIGHT: Mapping[int, int] = {1: 300, 32: 1500, 256: 3000}
"""How many pods are bound, by how many at once."""

WITHOUT, GO, GO_BINDS = "no extender", "go nothing", "go nothing binds"
MOORAGE, MOORAGE_BINDS = "moorage", "moorage binds"
OURS = (MOORAGE, MOORAGE_BINDS)
"""What the budget is about."""

MOORAGE_UNLIKE = "moorage, unlike pods"
REFERENCE: Mapping[str, str] = {GO_BINDS: GO_BINDS, MOORAGE_BINDS: GO_BINDS}
"""Who is compared with whom; all others with the Go extender that leaves binding to others."""

OWN_BINDER = "kube-scheduler's own"


def built() -> bool:
    """Whether the programs of the control plane are there."""
    return all(build.is_there(name) for name in ("etcd", "kube-apiserver", "kube-scheduler"))


async def measure(results: Results, directory: Path, say: Callable[[str], None]) -> None:
    """Measure everything on one control plane."""
    async with started(directory, say) as cluster, opened(directory, say) as bench:
        say(f"cluster: creating {NODES} nodes")
        await cluster.create_nodes(NODES)
        go = await bench.go_extender(NOTHING, f"-kubeconfig={cluster.kubeconfig}")
        stack = await bench.moorage(
            "moorage", cluster.kubeconfig, policy(), plugins=edge.PLUGIN_FILES
        )
        moorage = stack.addresses.extender
        results.scheduling += await _schedule(cluster, go, moorage, say)
        results.pause_ms = await _pause(go)
        results.binds += await _bind(bench, cluster, moorage, say)


async def _schedule(
    cluster: RealCluster, go: GoExtender, moorage: str, say: Callable[[str], None]
) -> list[SchedulingResult]:
    rates: dict[tuple[str, str], list[float]] = {}
    for repeat in range(max(REPEATS.values())):
        for sampling, percentage in SAMPLING.items():
            if repeat >= REPEATS[sampling]:
                continue
            # The control plane slows down as it goes, so the second half is the first one mirrored.
            cases = list(_cases(go.url, moorage).items())
            for name, extenders in reversed(cases) if repeat % 2 else cases:
                prefix = f"p{repeat}-{percentage}"  # names never come again
                kind: Pods = "unlike" if name == MOORAGE_UNLIKE else "equal"
                pods = await cluster.create_pods(prefix, PODS, PROFILE, kind)
                config = _config(extenders, percentage)
                rate = await cluster.pods_per_second([*pods], config, SECONDS)
                say(f"cluster: {name}, sampling {sampling}: {rate:.0f} pods/s")
                rates.setdefault((sampling, name), []).append(rate)
                await cluster.delete_pods()
    return [
        SchedulingResult(
            sampling=sampling,
            contender=name,
            pods_per_second=median(mine),
            each=mine,
            ratio=median(mine) / median(rates[sampling, REFERENCE.get(name, GO)]),
        )
        for (sampling, name), mine in rates.items()
    ]


def _cases(go: str, moorage: str) -> dict[str, list[Object]]:
    shipped = shipped_config()["extenders"][0]
    scoring = {
        key: value for key, value in shipped.items() if key not in ("bindVerb", "preemptVerb")
    }
    return {
        WITHOUT: [],
        GO: [{**scoring, "urlPrefix": go}],
        GO_BINDS: [{**scoring, "urlPrefix": go, "bindVerb": "bind"}],
        MOORAGE: [{**scoring, "urlPrefix": moorage}],
        MOORAGE_UNLIKE: [{**scoring, "urlPrefix": moorage}],
        MOORAGE_BINDS: [{**scoring, "urlPrefix": moorage, "bindVerb": "bind"}],
    }


def _config(extenders: list[Object], percentage: int) -> Object:
    return {
        **shipped_config(),
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": percentage,
        "profiles": [{"schedulerName": PROFILE}],
        "extenders": extenders,
    }


async def _pause(go: GoExtender) -> Figure | None:
    """Return how long kube-scheduler is busy between filter and prioritize."""
    async with aiohttp.ClientSession() as session, session.get(f"{go.url}/pauses") as response:
        pauses = await response.json(content_type=None)
    return figure(value / 1e6 for value in pauses) if pauses else None


class _Binds(msgspec.Struct):
    nanoseconds: list[int]
    total: int
    failures: int
    failure: str


async def _bind(
    bench: Bench, cluster: RealCluster, moorage: str, say: Callable[[str], None]
) -> list[BindResult]:
    binder = await bench.program(BINDER, f"-kubeconfig={cluster.kubeconfig}")
    found: list[BindResult] = []
    for in_flight, count in IN_FLIGHT.items():
        for name, url in ((OWN_BINDER, ""), (MOORAGE, moorage)):
            pods = await cluster.create_pods("bind", count, PROFILE)
            job = {"extender": url, "namespace": "default", "inFlight": in_flight}
            binds = await _ask(binder, {**job, "pods": _placed(pods)})
            say(f"binds: {name}, {in_flight} in flight: {binds.failures} failures")
            found.append(_bind_result(name, in_flight, binds))
            await cluster.delete_pods()
    return found


def _placed(pods: Mapping[str, str]) -> list[Object]:
    return [
        {"name": name, "uid": uid, "node": node_name(number % NODES)}
        for number, (name, uid) in enumerate(pods.items())
    ]


async def _ask(binder: asyncio.subprocess.Process, job: Object) -> _Binds:
    assert binder.stdin is not None
    assert binder.stdout is not None
    binder.stdin.write(msgspec.json.encode(job) + b"\n")
    line = await binder.stdout.readline()
    return msgspec.json.decode(line, type=_Binds)


def _bind_result(name: str, in_flight: int, binds: _Binds) -> BindResult:
    if not binds.nanoseconds:
        raise RuntimeError(f"{name} binds nothing: {binds.failure}")
    return BindResult(
        contender=name,
        in_flight=in_flight,
        latency=figure(value / 1e6 for value in binds.nanoseconds),
        binds_per_second=len(binds.nanoseconds) / (binds.total / 1e9),
        failures=binds.failures,
    )
