"""A rollout that never ends: replicas with two versions of a plugin come and go, cycle after cycle.

Every answer is one of the versions' own. `MOORAGE_EXAMPLES` sets the number of steps, four for
each example, `MOORAGE_MIXED_SEED` the seed that a failure shows.
"""

import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.up.processes import free_ports
from moorage import FilterPlugin, Normalization, ScorePlugin
from moorage.plugin.hooks import Plugin
from moorage_host.plugins.registry import load_registry
from tests.conftest import EXAMPLES
from tests.gateway.scheduling.noting import NAMES, fill, of_set, policy, told
from tools.inprocess.gateway import Gateway, filter_service, gateway, ready, scorer_service

STEPS = 4 * EXAMPLES
SEED = int(os.environ.get("MOORAGE_MIXED_SEED", "17"))

CODE = '''
from moorage import FilterPlugin, Normalization, Rejection, Scope, ScorePlugin

class Fits(FilterPlugin):
    """Rejects some ranks."""

    depends_on = Scope.NODE

    def filter_node(self, pod, node):
        return Rejection("{name}") if int(node.labels["liked"]) {rejects} else None

class Likes(ScorePlugin):
    """Prefers some ranks."""

    depends_on = Scope.{scope}
    normalization = Normalization.MAXIMUM
    weight = {weight}

    def score_node(self, pod, node):
        return float({score})
'''
RANK = 'int(node.labels["liked"])'
VERSIONS = {
    "one": {"rejects": "% 5 == 0", "score": RANK, "scope": "NODE", "weight": 1},
    "two": {"rejects": "> 80", "score": f"(100 - {RANK}) ** 2", "scope": "MANIFESTS", "weight": 7},
}


def load(folder: Path, version: str) -> tuple[type[Plugin], type[Plugin]]:
    """Write a version to a folder of its own, and load it."""
    (folder / version).mkdir()
    file = folder / version / "plugins.py"
    file.write_text(CODE.format(name=version, **VERSIONS[version]))
    kinds: list[type[Plugin]] = []
    for kind, name in ((FilterPlugin, "Fits"), (ScorePlugin, "Likes")):
        registered = load_registry(kind, (), [file]).get(name)
        assert registered is not None
        kinds.append(registered.kind)
    return kinds[0], kinds[1]


REJECTS: Mapping[str, Callable[[int], bool]] = {
    "one": lambda rank: rank % 5 == 0,
    "two": lambda rank: rank > 80,
}
SCORES: Mapping[str, Callable[[int], float]] = {
    "one": float,
    "two": lambda rank: float((100 - rank) ** 2),
}


def verdicts(version: str, ranks: Mapping[str, int]) -> dict[str, str]:
    """Return the nodes that a version rejects, with the reason."""
    return {name: version for name, rank in ranks.items() if REJECTS[version](rank)}


def scores(version: str, ranks: Mapping[str, int], names: list[str]) -> dict[str, int]:
    """Return the scores that a version alone gives."""
    raw = np.array([SCORES[version](ranks[name]) for name in names])
    whole = (Normalization.MAXIMUM.apply(raw) + 0.5).astype(int).tolist()
    return dict(zip(names, whole, strict=True))


class Rollout:
    """The replicas: each at a port of its own, with either version, restarted at will."""

    def __init__(self, loaded: Mapping[str, tuple[type[Any], type[Any]]]) -> None:
        self._loaded = loaded
        self._running: dict[int, AsyncExitStack] = {}
        self.filters, self.scorers = free_ports(2), free_ports(3)

    async def run(self, port: int, version: str) -> None:
        """Run a replica, instead of the one that runs there."""
        if port in self._running:
            await self._running.pop(port).aclose()
        fits, likes = self._loaded[version]
        service = (
            filter_service(fits, port=port)
            if port in self.filters
            else scorer_service(likes, port=port)
        )
        stack = self._running[port] = AsyncExitStack()
        await stack.enter_async_context(service)

    async def stop(self) -> None:
        for stack in self._running.values():
            await stack.aclose()


async def relabel(process: Gateway, name: str, rank: int) -> None:
    path = f"/api/v1/nodes/{name}"
    await told(process, "nodes", lambda: process.api.label(path, liked=str(rank)))


async def check(process: Gateway, name: str, ranks: Mapping[str, int], trace: str) -> None:
    """Place a pod; its verdicts and its scores are those of one version each."""
    filtered = await process.filter(of_set(name), *NAMES)
    assert not filtered["Error"], trace
    rejected = {**(filtered["FailedNodes"] or {}), **(filtered["FailedAndUnresolvableNodes"] or {})}
    assert rejected in [verdicts(version, ranks) for version in VERSIONS], trace
    left = filtered["NodeNames"]
    if len(left) < 2:
        return
    answer = await process.prioritize(of_set(name), *left)
    given = {each["Host"]: each["Score"] for each in answer}
    assert given in [scores(version, ranks, left) for version in VERSIONS], trace


@pytest.mark.timeout(0 if STEPS > 2000 else 300)
async def test_every_order_is_one_of_the_two_versions_own(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    loaded = {version: load(tmp_path, version) for version in VERSIONS}
    rollout = Rollout(loaded)
    (tmp_path / "policy.yaml").write_text(policy(scores="{name: Likes}"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(rollout.stop)
        for port in (*rollout.filters, *rollout.scorers):
            await rollout.run(port, rng.choice(list(VERSIONS)))
        process = await stack.enter_async_context(
            gateway(
                tmp_path,
                filters=[f"127.0.0.1:{port}" for port in rollout.filters],
                scorer=[f"127.0.0.1:{port}" for port in rollout.scorers],
                config=tmp_path / "policy.yaml",
                http_timeout=60.0,
                min_shard_time=0.0,
                hedge_floor=0.002,  # work is sent twice and thrice all the time
                resolve_interval=0.1,
            )
        )
        await ready(process)
        await fill(process)
        ranks = {name: int(name[1:]) for name in NAMES}
        for step in range(STEPS):
            chance, trace = rng.random(), f"MOORAGE_MIXED_SEED={SEED}, step {step}"
            if chance < 0.01:
                port = rng.choice([*rollout.filters, *rollout.scorers])
                await rollout.run(port, rng.choice(list(VERSIONS)))
            elif chance < 0.3:
                name = rng.choice(NAMES)
                ranks[name] = rng.choice([r for r in range(1, 100) if r != ranks[name]])
                await relabel(process, name, ranks[name])
            else:
                await check(process, f"p{step}", ranks, trace)
