"""A score plugin as a user writes it, its weight untouched, decides beside in-tree scores."""

import random
from dataclasses import dataclass, field

import pytest

from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

GPU = "example.com/gpu"
CLUSTERS = 25
ROUNDS = 2
OUTVOTED = "kube-scheduler's own scores outvoted Moorage's"


@dataclass(slots=True, kw_only=True)
class Machine:
    name: str
    cpu: int
    cpu_used: int
    gpus: int
    gpus_used: int
    is_avoided: bool

    @property
    def free(self) -> int:
        return self.gpus - self.gpus_used

    def obj(self, cluster: str) -> Object:
        made = node(self.name, str(self.cpu), labels={"cluster": cluster})
        for amounts in made["status"].values():
            amounts[GPU] = str(self.gpus)
        if self.is_avoided:
            taint = {"key": "example.com/old", "effect": "PreferNoSchedule"}
            made["spec"] = {"taints": [taint]}
        return made


@dataclass(slots=True, kw_only=True)
class Cluster:
    """Nodes that the pods of one cluster select: all clusters share one control plane.

    Attributes:
        is_fine: GPUs are shared in so many slices that one more or less is a small lead; a
            PreferNoSchedule taint then outvotes it.
    """

    name: str
    is_fine: bool
    machines: list[Machine] = field(default_factory=list)

    @classmethod
    def drawn(cls, name: str, dice: random.Random) -> "Cluster":
        cluster = cls(name=name, is_fine=dice.random() < 0.2)
        sizes = (128,) if cluster.is_fine else (1, 2, 4, 8)
        for index in range(dice.randint(3, 6)):
            gpus = dice.choice(sizes) if dice.random() < 0.7 else 0
            cpu = dice.choice((8, 16, 64))
            machine = Machine(
                name=f"c{name}-{index}",
                cpu=cpu,
                cpu_used=dice.randint(0, cpu // 2),
                gpus=gpus,
                gpus_used=dice.randint(0, min(gpus, 8)),
                is_avoided=cluster.is_fine and dice.random() < 0.5,
            )
            cluster.machines.append(machine)
        return cluster

    def best(self, gpus: int) -> set[str]:
        """Return where a pod belongs that wants so many GPUs."""
        if gpus:
            fitting = [m for m in self.machines if m.free >= gpus]
            least = min(m.free for m in fitting)
            return {m.name for m in fitting if m.free == least}
        return {m.name for m in self.machines if not m.gpus} or {m.name for m in self.machines}


def wanting(name: str, cpu: int, gpus: int, **spec: object) -> Object:
    amounts = {"cpu": str(cpu)} | ({GPU: str(gpus)} if gpus else {})
    container = {
        "name": "main",
        "image": "app:1",
        "resources": {"requests": amounts, "limits": amounts},
    }
    return pod(name, "packing", spec={"containers": [container], **spec})


async def test_a_gpu_packer_is_right_or_the_decision_names_who_outvoted_it(world: World) -> None:
    dice = random.Random(20261123)
    clusters = [Cluster.drawn(str(i), dice) for i in range(CLUSTERS)]
    machines = {m.name: m for cluster in clusters for m in cluster.machines}
    await world.nodes(*(m.obj(c.name) for c in clusters for m in c.machines))
    running = [
        wanting(f"on-{m.name}", m.cpu_used, m.gpus_used, nodeName=m.name)
        for m in machines.values()
        if m.cpu_used or m.gpus_used
    ]
    await world.create(*running)

    async def seen() -> bool:
        return await world.metric("moorage_cache_size", type="pods") >= len(running)

    await world.until(seen)
    outvoted: dict[str, list[str]] = {}
    async with world.scheduler("packing"):
        for step in range(ROUNDS):
            wanted = {
                c.name: dice.randint(1, most) if (most := _most(c)) and dice.random() < 0.7 else 0
                for c in clusters
            }
            await world.create(
                *(
                    wanting(f"p{step}-{name}", 1, gpus, nodeSelector={"cluster": name})
                    for name, gpus in wanted.items()
                )
            )
            names = [f"p{step}-{name}" for name in wanted]
            places = await world.bound(*names)
            for cluster in clusters:
                name, gpus = f"p{step}-{cluster.name}", wanted[cluster.name]
                place = places[name]
                if place not in cluster.best(gpus):
                    outvoted[name] = (await world.decision(name))["why"]
                    assert cluster.is_fine, (name, place, outvoted[name])
                machines[place].gpus_used += gpus
    for name, why in outvoted.items():
        assert any(OUTVOTED in line for line in why), (name, why)


def _most(cluster: Cluster) -> int:
    return min(max(m.free for m in cluster.machines), 4)
