"""What a shadow does to the edge's latency: `python -m bench.edge.shadows [NODES [NAMES]]`.

One caller filters and ranks nodes for pods that have no equal, one after the other without a pause,
in turns for a profile without a shadow, with one of the default share, and with one of all time.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from bench.processes.objects import new_pod, node_name
from bench.processes.policies import FILTERS, SCORES, of, profile
from bench.processes.stacks import Bench, opened

TURNS = 45
ROUNDS = 25
"""Of each profile in one turn; the first ones are not counted."""

WARM_UP = 5
PLUGINS = 3

SHADOWS: dict[str, object] = {"plain": None, "default": {}, "always": {"maxShare": "100%"}}
"""The shadow by the name of the profile: the same plugins once more."""


def policy() -> object:
    """Return the policy that has all three profiles."""
    filters: list[object] = [{"name": name} for name in FILTERS[:PLUGINS]]
    scores: list[object] = [{"name": name, "weight": weight} for name, weight in SCORES[:PLUGINS]]
    made = {name: profile(name, filters=filters, scores=scores) for name in SHADOWS}
    for name, shadow in SHADOWS.items():
        if shadow is not None:
            made[name]["shadow"] = shadow
    return of(made.values())


def pod(profile_name: str, name: str) -> Any:
    """Build a pod that differs from all others."""
    made = new_pod()
    made["metadata"] |= {"name": name, "uid": name, "labels": {"app": name}}
    made["spec"] |= {"schedulerName": profile_name}
    return made


async def cycle(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> float:
    """Return the milliseconds of filter and prioritize together."""
    start = time.perf_counter()
    async with session.post(f"{url}/filter", json=body) as answer:
        left = (await answer.json(content_type=None))["NodeNames"]
    async with session.post(f"{url}/prioritize", json=body | {"NodeNames": left}) as answer:
        assert len(await answer.json(content_type=None)) == len(left)
    return 1000 * (time.perf_counter() - start)


async def measure(bench: Bench, nodes: int, names: int) -> None:
    """Measure, and print a line for each profile."""
    cluster = await bench.cluster(nodes, 5)
    stack = await bench.moorage("moorage", cluster.kubeconfig, policy())
    times: dict[str, list[float]] = {name: [] for name in SHADOWS}
    async with aiohttp.ClientSession() as session:
        for turn in range(TURNS):
            first_name = turn % len(SHADOWS)
            order = [*SHADOWS, *SHADOWS][first_name : first_name + len(SHADOWS)]
            for name in order:
                for number in range(ROUNDS):
                    first = (turn * ROUNDS + number) * names
                    asked = [node_name((first + i) % nodes) for i in range(names)]
                    made = pod(name, f"{name}-{turn}-{number}")
                    url = stack.addresses.extender
                    took = await cycle(session, url, {"Pod": made, "NodeNames": asked})
                    if number >= WARM_UP:
                        times[name].append(took)
                await asyncio.sleep(0.2)  # what runs beside a turn ends with it
        async with session.get(f"{stack.addresses.admin}/shadow") as answer:
            shadows = (await answer.json())["profiles"]
    reports = {report["profile"]: report for report in shadows}
    plain = np.percentile(times["plain"], [50, 90, 99])
    for name, found in times.items():
        quantiles = np.percentile(found, [50, 90, 99])
        shown = "  ".join(
            f"{label} {value:7.2f} ms ({value / base:.2f}x)"
            for label, value, base in zip(("p50", "p90", "p99"), quantiles, plain, strict=True)
        )
        report = reports.get(name, {})
        print(
            f"{name:8} {shown} of {len(found)} cycles; "
            f"compared {report.get('compared', 0)}, agreement {report.get('agreement')}, "
            f"skipped {report.get('skipped', {})}, failed {report.get('failed', 0)}"
        )


async def main(nodes: int, names: int) -> None:
    """Measure on real processes."""
    with tempfile.TemporaryDirectory() as directory:
        async with opened(Path(directory), lambda text: print(text, file=sys.stderr)) as bench:
            await measure(bench, nodes, names)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:3]]
    asyncio.run(main(*given, *(5000, 500)[len(given) :]))
