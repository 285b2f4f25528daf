"""Filter and prioritize at the HTTP edge, call by call: all contenders in turn on one cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.processes import stacks
from bench.processes.goprograms import CLIENT, NOTHING, PLUGINS
from bench.processes.load import Call, Contender, Job, Load, LoadError, Pods, Round
from bench.processes.objects import PODS_PER_NODE, Object, new_pod
from bench.processes.stacks import Bench, Cluster, GoExtender, Stack, opened
from bench.results import EdgeResult, Figure, Results, figure

REFERENCE = "go nothing"
GO_PLUGINS = "go 3+3"

EMPTY_PROFILE = "moorage, empty profile"
"""A profile without plugins: no replica is asked."""

MAIN, PER_NODE = "moorage 3+3", "moorage per node 3+3"
"""What the budgets are about: three filters and three scores, for all nodes at once or for one."""

NUMBERED = f"{MAIN}, numbered pods"
"""The same processes and the same profile, asked about pods as those of a StatefulSet."""


async def contenders(bench: Bench, cluster: Cluster) -> dict[str, Contender]:
    """Start everything that is asked; return it by name."""
    nothing = await bench.go_extender(NOTHING)
    plugins = await bench.go_extender(PLUGINS, f"-api={cluster.api}")
    stack = await bench.moorage("moorage", cluster.kubeconfig)
    found = [
        of_go(REFERENCE, nothing),
        of_go(GO_PLUGINS, plugins),
        of_moorage(EMPTY_PROFILE, stack, stacks.EMPTY),
        of_moorage(MAIN, stack, stacks.BATCH),
        of_moorage(PER_NODE, stack, stacks.PER_NODE),
        # The last, so that its turn hardly ever comes directly after that of the same profile.
        of_moorage(NUMBERED, stack, stacks.BATCH, "numbered"),
    ]
    return {contender.name: contender for contender in found}


def of_go(name: str, extender: GoExtender) -> Contender:
    """Return a Go extender as a contender."""
    return Contender(name, extender.url, pids=[extender.pid])


def of_moorage(name: str, stack: Stack, profile: str, pods: Pods = "unlike") -> Contender:
    """Return Moorage with one of its profiles as a contender."""
    return Contender(name, stack.addresses.extender, profile, [*stack.pids.values()], pods)


CLUSTER_NODES = 5000
WARM_UP = 10
"""At least; more until all nodes have been named, so that numbered pods are cached for all."""

WHOLE_WARM_UP = 2
HEARTBEATS = 17
"""Nodes that change from one round to the next with whole nodes: kubelet's five minutes, 5,000
nodes, and a round in about a second."""

PAUSE = 10.0
"""Milliseconds between filter and prioritize in kube-scheduler with 5,000 feasible nodes."""

QUICK_PODS_PER_NODE = 4
COMPARED = (REFERENCE, GO_PLUGINS, MAIN)
BUDGETED = (*COMPARED, EMPTY_PROFILE, NUMBERED, PER_NODE)

MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which calls are made, and to whom.

    Attributes:
        pause: Milliseconds between filter and prioritize.
        seconds: After which no new round begins.
    """

    nodes: int
    contenders: Sequence[str]
    rounds: int
    seconds: float
    whole: bool = False
    pause: float = 0

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"{self.nodes} {'whole nodes' if self.whole else 'names'}"

    @property
    def warm_up(self) -> int:
        """Rounds that do not count."""
        return WHOLE_WARM_UP if self.whole else max(WARM_UP, CLUSTER_NODES // self.nodes)


def questions(*, quick: bool) -> list[Question]:
    """Return what is asked: all of it, or what the budgets are about, with few rounds."""
    if quick:
        asked = [_names(count, BUDGETED, 80, 10) for count in (500, 5000)]
        return [*asked, _whole(6, 15)]
    return [
        *(_names(count, BUDGETED, 200, 60) for count in (500, 800, 5000)),
        *(_names(count, (*COMPARED, NUMBERED), 100, 20, pause=PAUSE) for count in (500, 5000)),
        _whole(30, 120),
    ]


def _names(
    nodes: int, asked: Sequence[str], rounds: int, seconds: float, pause: float = 0
) -> Question:
    return Question(nodes=nodes, contenders=asked, rounds=rounds, seconds=seconds, pause=pause)


def _whole(rounds: int, seconds: float) -> Question:
    return Question(nodes=5000, contenders=COMPARED, rounds=rounds, seconds=seconds, whole=True)


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Ask all questions, one after another, on one cluster."""
    pods = QUICK_PODS_PER_NODE if results.quick else PODS_PER_NODE
    async with opened(directory, progress) as bench:
        progress(f"a cluster of {CLUSTER_NODES} nodes with {pods} pods each")
        cluster = await bench.cluster(CLUSTER_NODES, pods)
        found = await contenders(bench, cluster)
        load = Load(await bench.program(CLIENT))
        for question in questions(quick=results.quick):
            title = question.title + (f", pause of {question.pause:g} ms" if question.pause else "")
            work = job(question, cluster, found)
            total = work.warm_up + work.rounds

            def show_rounds(done: int, title: str = title, total: int = total) -> None:
                progress(f"{title}: {done} of at most {total} rounds")

            rounds = await load.run(work, show_rounds)
            results.edge += summed_up(question, rounds)


def summed_up(question: Question, rounds: Sequence[Round]) -> Iterator[EdgeResult]:
    """Make a result of each contender's rounds."""
    of_each = {name: succeeded(rounds, name) for name in question.contenders}
    reference = sums(of_each[REFERENCE])
    for name, mine in of_each.items():
        both, answered = sums(mine)
        yield EdgeResult(
            question=question.title,
            contender=name,
            pause=question.pause,
            filter=figure(r.filter.decoded / MS for r in mine),
            prioritize=figure(r.prioritize.decoded / MS for r in mine),
            both=both,
            answered=answered,
            ratio=both.p50 / reference[0].p50,
            ratio_answered=answered.p50 / reference[1].p50,
            processor=fmean(r.processor / MS for r in mine),
            feasible=fmean(r.feasible for r in mine),
        )


def job(
    question: Question, cluster: Cluster, found: Mapping[str, Contender], pod: Object | None = None
) -> Job:
    """Return a question, about copies of a pod, as a job of the load."""
    return Job(
        api=cluster.api,
        contenders=[found[name] for name in question.contenders],
        nodes=question.nodes,
        rounds=question.rounds,
        warm_up=question.warm_up,
        seconds=question.seconds,
        whole=question.whole,
        changed=HEARTBEATS if question.whole else 0,
        pause_ms=question.pause,
        pod=pod or new_pod(),
    )


def succeeded(rounds: Sequence[Round], name: str) -> list[Round]:
    """Return the rounds of a contender that did not fail.

    Raises:
        LoadError: Most did.
    """
    mine = [r for r in rounds if r.contender == name]
    good = [r for r in mine if not r.failure]
    if 2 * len(good) < len(mine):
        raise LoadError(f"{name} fails: {next(r.failure for r in mine if r.failure)}")
    return good


def sums(rounds: Sequence[Round]) -> tuple[Figure, Figure]:
    """Return filter and prioritize together, decoded and answered."""
    decoded = figure(_of_both(r, lambda call: call.decoded) / MS for r in rounds)
    return decoded, figure(_of_both(r, lambda call: call.answered) / MS for r in rounds)


def _of_both(one: Round, what: Callable[[Call], int]) -> int:
    return what(one.filter) + what(one.prioritize)
