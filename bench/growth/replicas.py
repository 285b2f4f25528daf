"""Replicas: one score plugin that takes time for each node, in one, two and three scorers.

Scorers get parts of the nodes, always or where the gateway's defaults find it worth it. The cost of
the plugin from which on replicas win is what the defaults were chosen by.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from bench.edge import measure as edge
from bench.edge.measure import Question
from bench.edge.questions import QUICK_PODS_PER_NODE
from bench.processes import policies
from bench.processes.goprograms import CLIENT
from bench.processes.load import Contender, Load, Round
from bench.processes.stacks import Bench, Cluster, Stack, opened
from bench.results import ReplicasResult, Results

SIZES = (500, 5000)
COSTS = (0.1, 1.0, 10.0)
"""Microseconds for each node."""

ONE = "1 scorer"
ALWAYS = ("--min-nodes-per-shard=1", "--min-shard-time=0s")
SCORERS: Mapping[str, tuple[int, Sequence[str]]] = {
    ONE: (1, ()),
    "2, always": (2, ALWAYS),
    "3, always": (3, ALWAYS),
    "2, by default": (2, ()),
    "3, by default": (3, ()),
}
"""How many, and the options of their gateway."""

ROUNDS = 80
SECONDS = 25.0
PLUGIN = policies.PLUGINS / "spins.py"


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Measure each plugin on each number of nodes."""
    async with opened(directory, progress) as bench:
        progress(f"replicas: a cluster of {edge.CLUSTER_NODES} nodes")
        cluster = await bench.cluster(edge.CLUSTER_NODES, QUICK_PODS_PER_NODE)
        stacks = {name: await start(bench, cluster, name) for name in SCORERS}
        load = Load(await bench.program(CLIENT))
        for nodes, cost in product(SIZES, COSTS):
            progress(f"replicas: {nodes} names, {cost:g} us for each")
            asked = {name: contender(name, stack, cost) for name, stack in stacks.items()}
            question = Question(nodes=nodes, contenders=[*asked], rounds=ROUNDS, seconds=SECONDS)
            rounds = await load.run(edge.job(question, cluster, asked), lambda _: None)
            results.replicas += summed_up(nodes, cost, rounds)


def summed_up(nodes: int, cost: float, rounds: Sequence[Round]) -> Iterator[ReplicasResult]:
    """Make a result of each number of scorers."""
    of_each = {name: edge.sums(edge.succeeded(rounds, name))[1] for name in SCORERS}
    for name, answered in of_each.items():
        yield ReplicasResult(
            nodes=nodes,
            microseconds=cost,
            scorers=name,
            answered=answered,
            ratio=answered.p50 / of_each[ONE].p50,
        )


async def start(bench: Bench, cluster: Cluster, name: str) -> Stack:
    """Start Moorage with some scorers; the name is one of SCORERS."""
    scorers, options = SCORERS[name]
    return await bench.moorage(
        name.replace(", ", "-").replace(" ", "-"),
        cluster.kubeconfig,
        policy(),
        scorers=scorers,
        plugins=[PLUGIN],
        gateway_options=options,
    )


def contender(name: str, stack: Stack, cost: float) -> Contender:
    """Name a stack that is asked with the plugin that takes so many microseconds."""
    pids = [*stack.pids.values()]
    return Contender(name, stack.addresses.extender, _profile_name(cost), pids)


def policy() -> object:
    """Return the policy with a profile for each cost."""
    return policies.of(_profile(cost) for cost in COSTS)


def _profile(cost: float) -> object:
    config = {"name": "Spins", "args": {"microseconds": cost}}
    profile = policies.profile(_profile_name(cost), filters=[], scores=[{"name": "Spins"}])
    return {**profile, "pluginConfig": [config]}


def _profile_name(cost: float) -> str:
    return f"spins-{cost:g}"
