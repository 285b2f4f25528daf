"""With the cache and without, with one replica or two: random clusters get the same answers."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage import Scope
from sandbox.apiserver.resources.table import parse
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS
from tests.conftest import EXAMPLES
from tests.gateway.random_clusters import Object, RandomCluster
from tests.gateway.scheduling.noting import decided, policy, told
from tests.gateway.sharing import place, same, sharing
from tools.inprocess.gateway import IN_TREE, Gateway, Options
from tools.waiting import until

COUNT = 24
STEPS = min(EXAMPLES, 50)
TEMPLATES = 4
ARGS = {"NodeMetadata": "{metadataKey: price, metadataSource: Annotation}"}
PODS = "/api/v1/namespaces/default/pods"


def everything() -> str:
    """Write a policy with all plugins that look at nothing but one node at a time."""
    filters = [plugin.name for plugin in FILTERS if plugin.depends_on <= Scope.MANIFESTS]
    scores = [p.name for p in SCORERS if p.depends_on is Scope.NODE]
    return policy(
        ", ".join(f"{{name: {name}}}" for name in filters),
        ", ".join(f"{{name: {name}, weight: {i}}}" for i, name in enumerate(scores, start=1)),
        ", ".join(
            f"{{name: {name}, timeBudget: 30s, args: {ARGS.get(name, {})}}}"
            for name in {*filters, *scores}
        ),
    )


@dataclass
class World:
    """A random cluster that changes in all gateways alike."""

    random: Random
    gateways: list[Gateway]
    nodes: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    steps: int = 0

    @property
    def made(self) -> RandomCluster:
        return RandomCluster(self.random)

    async def all_told(self, resource: str, change: Callable[[Gateway], Any]) -> None:
        """Change all clusters; wait until their gateways have heard of it."""
        changes = (told(each, resource, partial(change, each)) for each in self.gateways)
        await asyncio.gather(*changes)

    async def change(self) -> None:
        self.steps += 1
        changes = (self.new_node, self.other_node, self.other_size, self.no_node)
        await self.random.choice((*changes, self.new_pod, self.new_pod, self.no_pod))()

    def some_node(self) -> str:
        return self.random.choice(sorted(self.nodes))

    def node(self, name: str) -> Object:
        """Make a node that reads like none before."""
        obj = self.made.node(int(name[1:]))
        obj["metadata"]["labels"] |= {
            "step": f"{self.steps}",
            "nodeGroup": self.random.choice("ab"),
        }
        return obj

    async def new_node(self) -> None:
        free = sorted({f"n{number}" for number in range(COUNT)} - self.nodes)
        if not free:
            return
        obj = self.node(self.random.choice(free))
        self.nodes.add(obj["metadata"]["name"])
        await self.all_told("nodes", lambda process: process.api.create("/api/v1/nodes", obj))

    async def other_node(self) -> None:
        obj = self.node(self.some_node())
        path = parse(f"/api/v1/nodes/{obj['metadata']['name']}")
        await self.all_told("nodes", lambda p: p.api.server.cluster.update(path, obj))

    async def other_size(self) -> None:
        name, amount = self.some_node(), 9000 + self.steps
        allocatable = {"cpu": f"{amount // 2}m", "memory": f"{amount}Mi", "pods": "3"}
        obj = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
        path = parse(f"/api/v1/nodes/{name}/status")
        await self.all_told("nodes", lambda p: p.api.server.cluster.update(path, obj))

    async def no_node(self) -> None:
        name = self.some_node()
        self.nodes.discard(name)
        await self.all_told("nodes", lambda p: p.api.delete(f"/api/v1/nodes/{name}"))

    async def new_pod(self, name: str = "") -> None:
        self.steps += 1
        obj = self.made.pod(f"on-{self.steps}", name or self.some_node())
        obj["spec"]["containers"][0] |= {"ports": ports(self.random)}
        self.pods.add(obj["metadata"]["name"])
        await self.all_told("pods", lambda p: p.api.create(PODS, obj))

    async def no_pod(self) -> None:
        if self.pods:
            name = self.random.choice(sorted(self.pods))
            self.pods.discard(name)
            await self.all_told("pods", lambda p: p.api.delete(f"{PODS}/{name}"))


def ports(random: Random) -> list[Object]:
    if random.random() < 0.5:
        return []
    return [{"containerPort": 80, "hostPort": random.choice((80, 81))}]


def template(made: RandomCluster, number: int) -> Object:
    """Make what equal pods have in common."""
    obj = made.pod(f"t{number}")
    spec, random = obj["spec"], made.random
    spec["tolerations"] = random.choice(([], [{"key": "gpu", "operator": "Exists"}]))
    spec["nodeSelector"] = random.choice(({}, {"disk": "ssd"}))
    spec["containers"][0] |= {"ports": ports(random)}
    if number == 0:
        obj["metadata"]["labels"]["nodeGroup"] = "a"
    if number == 1:
        del spec["affinity"]  # so that a plugin has no opinion
    return obj


def equal(obj: Object, name: str) -> Object:
    """Make a pod that differs from others of its template only where no plugin looks."""
    own = {"name": name, "uid": f"uid-{name}", "annotations": {"index": name}}
    owner = {"kind": "Workflow", "name": name, "uid": f"of-{name}"}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    return {
        **obj,
        "metadata": {**obj["metadata"], **own, "ownerReferences": [owner]},
        "spec": {**obj["spec"], "volumes": [volume]},
    }


BEST_100 = IN_TREE + "scoreScale: 100\n"


@pytest.mark.parametrize(
    ("seed", "text"),
    [(0, everything()), (2, BEST_100)],
    ids=["local", "in-tree"],
)
async def test_the_cache_changes_no_answer(tmp_path: Path, seed: int, text: str) -> None:
    random = Random(seed)
    async with AsyncExitStack() as stack:
        gateways = []
        for limit, replicas in ((0, 1), (20_000, 1), (1 << 20, 2)):
            options: Options = {"count": replicas, "policy": text, "cache_bytes": limit}
            running = sharing(tmp_path, name=f"{limit}-{replicas}", **options)
            gateways.append(await stack.enter_async_context(running))
        world = World(random, gateways)
        await asyncio.gather(*(world.new_node() for _ in range(COUNT - 4)))
        size = "moorage_cache_size"
        await until(lambda: {each.sample(size, type="nodes") for each in gateways} == {COUNT - 4})
        templates = [template(world.made, number) for number in range(TEMPLATES)]
        cached, names = 0, [f"n{number}" for number in range(COUNT)]
        for step in range(STEPS):
            for _ in range(random.randint(0, 2)):
                await world.change()
            obj = equal(random.choice(templates), f"p{step}")
            some = random.sample(names, random.choice((6, 12, COUNT)))
            placing = (place(process, obj, some) for process in gateways)
            plain, *others = await asyncio.gather(*placing)
            for other in others:
                same(plain, other)
            if plain["scores"]:
                best = max(plain["scores"], key=plain["scores"].__getitem__)
                await world.new_pod(best)
            decision = await decided(gateways[2], f"p{step}")
            phases = (decision.get("filter", {}), decision.get("score", {}))
            cached += sum(phase.get("cachedNodes", 0) for phase in phases)
        assert cached > STEPS
