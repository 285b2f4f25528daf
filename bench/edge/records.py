"""What keeping decisions costs: the same cycles with records and without.

Without, the gateway keeps the latest attempt of one pod, which it needs for binds, and no verdicts
and scores of nodes, which replicas then do not send.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from bench.edge import measure as edge
from bench.edge.contenders import of_moorage
from bench.edge.measure import Question
from bench.edge.questions import QUICK_PODS_PER_NODE
from bench.figures import figure
from bench.processes.goprograms import CLIENT
from bench.processes.load import Contender, Load, Pods, Round
from bench.processes.policies import PER_NODE_PLUGINS, policy, profile_name
from bench.processes.stacks import Bench, Cluster, opened
from bench.results import RecordsResult, Results

SIZES = (500, 5000)
PODS: Sequence[Pods] = ("unlike", "numbered")
"""How the pods of the load differ; numbered ones are decided from the cache."""

WITH, WITHOUT = "with records", "without records"
ARRAYS = 256
"""Attempts of which the gateway keeps arrays of nodes, its default."""

OPTIONS: Mapping[str, Sequence[str]] = {
    WITH: (f"--decision-arrays={ARRAYS}",),
    WITHOUT: ("--decision-arrays=0", "--decision-pods=1", "--decision-memory=0"),
}
PAIRS, QUICK_PAIRS = 5, 1
"""Gateways of each kind: two that are alike differ by up to a tenth."""

WARM_UP = ARRAYS
"""Rounds that do not count, once for each number of names.

Until then arrays take memory that was never used, which costs page faults. Later ones take the
memory of older ones.
"""

ROUNDS, QUICK_ROUNDS = 200, 20
SECONDS = 60.0


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Measure cycles of each size, for each kind of pods."""
    async with opened(directory, progress) as bench:
        progress(f"records: a cluster of {edge.CLUSTER_NODES} nodes")
        cluster = await bench.cluster(edge.CLUSTER_NODES, QUICK_PODS_PER_NODE)
        found = await _contenders(bench, cluster, QUICK_PAIRS if results.quick else PAIRS)
        load = Load(await bench.program(CLIENT))
        rounds = QUICK_ROUNDS if results.quick else ROUNDS
        for nodes, pods in product(SIZES, PODS):
            progress(f"records: {nodes} names, {pods} pods")
            asked = {key: replace(one, pods=pods) for key, one in found.items()}
            question = Question(nodes=nodes, contenders=[*asked], rounds=rounds, seconds=SECONDS)
            job = edge.job(question, cluster, asked)
            if pods == PODS[0]:
                job = replace(job, warm_up=WARM_UP)
            done = await load.run(job, lambda _: None)
            results.records.append(summed_up(nodes, pods, done))


def summed_up(nodes: int, pods: str, rounds: Sequence[Round]) -> RecordsResult:
    """Compare the cycles of all gateways with records to those of the gateways without."""
    kept, without = (list(_of(kind, rounds)) for kind in (WITH, WITHOUT))
    answered, answered_without = edge.sums(kept)[1], edge.sums(without)[1]
    processor, processor_without = (
        figure(one.processor / edge.MS for one in mine).p50 for mine in (kept, without)
    )
    return RecordsResult(
        nodes=nodes,
        pods=pods,
        answered=answered,
        answered_without=answered_without,
        ratio=answered.p50 / answered_without.p50,
        processor_ratio=processor / processor_without,
    )


def _of(kind: str, rounds: Sequence[Round]) -> Iterator[Round]:
    for name in dict.fromkeys(one.contender for one in rounds):
        if name.startswith(kind):
            yield from edge.succeeded(rounds, name)


async def _contenders(bench: Bench, cluster: Cluster, pairs: int) -> Mapping[str, Contender]:
    found = {}
    for number, (kind, options) in product(range(pairs), OPTIONS.items()):
        name = _name(kind, number)
        stack = await bench.moorage(
            name.replace(" ", "-"),
            cluster.kubeconfig,
            policy(),
            plugins=[PER_NODE_PLUGINS],
            gateway_options=options,
        )
        found[name] = of_moorage(name, stack, profile_name("batch", 3))
    return found


def _name(kind: str, number: int) -> str:
    return f"{kind} {number + 1}"
