"""Random groups come and go, nodes are lost and processes are killed: no group stays in part.

Of one that lacks a member no pod gets a node, and no node gets more pods than fit.

`MOORAGE_GROUPS=1000 pytest tests/scenarios/test_random_groups.py` runs so many.
"""

import asyncio
import os
import random
from collections import Counter, defaultdict

import pytest

from tests.scenarios.test_gangs import members, nothing_held
from tests.scenarios.world import PODS, World
from tools.planes.objects import node

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(3600),
]

GROUPS = int(os.environ.get("MOORAGE_GROUPS", "12"))
NODES = [f"n{number}" for number in range(12)]
FIT = 8
"""Pods that fit on a node."""

SLOTS = FIT * len(NODES)
SIZES = (2, 2, 3, 4, 5, 8, 12)
LACKING = 5
"""The last digit of the groups that lack a pod."""

KILLED = ("gateway", "filter", "binder")
PATIENCE = 240.0  # parts of a group that come at different times meet after some rounds of 10 s


class Groups:
    """The groups that there are: their sizes, and how many pods of each have a node.

    Attributes:
        short: The sizes of those that lack a member, which is one more than they have pods.
    """

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.sizes: dict[str, int] = {}
        self.short: dict[str, int] = {}
        self.disturbed: set[str] = set()

    async def bound(self) -> dict[str, int]:
        """Return how many pods of each group have a node."""
        counts: dict[str, int] = defaultdict(int)
        for name, place in (await self.world.places()).items():
            counts[name.rpartition("-")[0]] += bool(place)
        return counts

    async def create(self, name: str, *, lacks: bool) -> None:
        """Create a group, of 40 pods now and then; one that *lacks* its last pod never runs."""
        size = 40 if self.rng.random() < 0.02 else self.rng.choice(SIZES)
        (self.short if lacks else self.sizes)[name] = size
        await self.world.create(*members(name, size, cpu="1")[: size - lacks])

    async def delete(self, name: str) -> None:
        """Delete all pods of a group."""
        for number in range(self.sizes.pop(name, 0) or self.short.pop(name)):
            await self.world.request("DELETE", f"{PODS}/{name}-{number}")
        self.disturbed.discard(name)

    async def delete_whole(self) -> None:
        """Delete a group that runs, if there is one: it has done its work."""
        counts = await self.bound()
        if whole := [name for name, size in self.sizes.items() if counts[name] == size]:
            await self.delete(self.rng.choice(whole))

    async def delete_member(self) -> None:
        """Delete a pod of a group, which has to be deleted as a whole in the end."""
        if self.sizes:
            name = self.rng.choice([*self.sizes])
            number = self.rng.randrange(self.sizes[name])
            await self.world.request("DELETE", f"{PODS}/{name}-{number}")
            self.disturbed.add(name)

    async def lose_node(self) -> None:
        """Delete a node with the pods on it, and create it again."""
        lost = self.rng.choice(NODES)
        await self.world.request("DELETE", f"/api/v1/nodes/{lost}")
        for name, place in (await self.world.places()).items():
            if place == lost:
                await self.world.request("DELETE", f"{PODS}/{name}")
                self.disturbed.add(name.rpartition("-")[0])
        await self.world.create(node(lost))

    async def kill(self) -> None:
        """Kill a process of Moorage, and start it again."""
        program = self.world.services.programs[self.rng.choice(KILLED)]
        await program.kill()
        await program.start()

    async def settle(self) -> None:
        """Wait until each whole group runs; those that do make room for the others.

        Then judge where pods are, and delete the groups that lack a member.
        """
        for name in self.disturbed & self.sizes.keys():
            await self.delete(name)

        async def all_whole() -> bool:
            counts = await self.bound()
            waiting = [name for name, size in self.sizes.items() if counts[name] < size]
            if waiting and sum(self.sizes.values()) > SLOTS:
                await self.delete_whole()
            return not waiting

        await self.world.until(all_whole, PATIENCE)
        counts = await self.bound()
        assert {name: counts[name] for name in self.short if counts[name]} == {}
        on_nodes = Counter(filter(None, (await self.world.places()).values()))
        assert max(on_nodes.values(), default=0) <= FIT, on_nodes
        for name in [*self.short]:
            await self.delete(name)


async def test_random_groups_run_as_a_whole_in_the_end(world: World) -> None:
    rng = random.Random(int(os.environ.get("MOORAGE_SEED", "29")))
    groups = Groups(world, rng)
    await world.nodes(*map(node, NODES))
    rare = (groups.delete_member, groups.lose_node, groups.kill)
    async with world.scheduler("ganged"):
        for number in range(GROUPS):
            trouble = rng.choice(rare)() if rng.random() < 0.4 else groups.delete_whole()
            lacks = number % 10 == LACKING
            await asyncio.gather(groups.create(f"g{number}", lacks=lacks), trouble)
            if number % 12 == 11 or number == GROUPS - 1:
                await groups.settle()
                await nothing_held(world)
