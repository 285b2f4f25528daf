"""The measurement of one plugin in several scorers."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from bench.growth import replicas
from bench.processes import objects
from bench.processes.stacks import Stack, opened
from tests.bench.results import a_round

NODES = 300
CHEAP = min(replicas.COSTS)


@pytest.mark.timeout(120)
async def test_scorers_share_a_cheap_cycle_only_if_they_always_do(tmp_path: Path) -> None:
    async with opened(tmp_path, print) as bench:
        cluster = await bench.cluster(NODES, 1)
        for name, expected in {"3, always": 3, "3, by default": 1}.items():
            stack = await replicas.start(bench, cluster, name)
            async with asyncio.timeout(20):  # until all scorers take part
                while await shards(stack) != expected:  # noqa: ASYNC110 - other processes
                    await asyncio.sleep(0.1)


async def shards(stack: Stack) -> int:
    """Have a pod's nodes scored; return by how many scorers."""
    pod = objects.new_pod()
    pod["metadata"]["uid"] = "uid"
    pod["spec"]["schedulerName"] = replicas.contender("", stack, CHEAP).profile
    names = [node["metadata"]["name"] for node in objects.nodes(NODES)]
    body = {"Pod": pod, "NodeNames": names}
    metadata = pod["metadata"]
    decision = f"{stack.addresses.admin}/decisions/{metadata['namespace']}/{metadata['name']}"
    async with aiohttp.ClientSession() as session:
        for verb in ("filter", "prioritize"):
            url = f"{stack.addresses.extender}/{verb}"
            async with session.post(url, json=body, raise_for_status=True):
                pass
        async with session.get(decision) as response:
            score = (await response.json())["attempts"][0]["score"]
    assert score["nodes"] == NODES
    return int(score.get("shards", 1))


def test_ratios_are_to_one_scorer() -> None:
    took = {replicas.ONE: 10.0, "2, always": 7.5}
    rounds = [a_round(name, took.get(name, 20.0)) for name in replicas.SCORERS for _ in range(2)]
    found = {one.scorers: one for one in replicas.summed_up(500, 1.0, rounds)}
    assert found.keys() == replicas.SCORERS.keys()
    assert (found["2, always"].ratio, found["3, always"].ratio) == (0.75, 2.0)
    assert {(one.nodes, one.microseconds) for one in found.values()} == {(500, 1.0)}
