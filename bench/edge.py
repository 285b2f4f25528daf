"""Filter and prioritize at the HTTP edge, call by call: all contenders in turn on one cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.processes import stacks
from bench.processes.goprograms import CLIENT, NOTHING, PLUGINS
from bench.processes.load import Contender, Job, Load, LoadError, Pods, Round
from bench.processes.objects import PODS_PER_NODE, Object, new_pod
from bench.processes.stacks import Bench, Cluster, GoExtender, Stack, opened
from bench.report import EDGE, Figure, Results, Table, Verdict, figure

REFERENCE = "go nothing"
GO_PLUGINS = "go 3+3"

EMPTY_PROFILE = "moorage, empty profile"
"""A profile without plugins: no replica is asked."""

MAIN, PER_NODE = "moorage 3+3", "moorage per node 3+3"
"""What the budgets are about: three filters and three scores, for all nodes at once or for one."""

NUMBERED = f"{MAIN}, numbered pods"
"""The same processes and the same profile, asked about pods as those of a StatefulSet."""

BUDGETS = (
    ("5000 names", NUMBERED, 0.5),
    ("5000 names", MAIN, 0.7),
    ("500 names", NUMBERED, 0.8),
    ("500 names", MAIN, 1.3),
    ("5000 whole nodes", MAIN, 0.28),
    ("500 names", PER_NODE, 1.5),
)
"""The most time of filter and prioritize together, by question and contender, until the last byte
of each answer: kube-scheduler needs the same time to decode all."""

CLUSTER_NODES = 5000
WARM_UP = 10
"""At least; more until all nodes have been named, so that numbered pods are cached for all."""

WHOLE_WARM_UP = 2
HEARTBEATS = 17
"""Nodes that change from one round to the next with whole nodes: kubelet's five minutes, 5,000
nodes, and a round in about a second."""

QUICK_PODS_PER_NODE = 4
COMPARED = (REFERENCE, GO_PLUGINS, MAIN)
BUDGETED = (*COMPARED, EMPTY_PROFILE, NUMBERED, PER_NODE)

MS = 1e6


async def contenders(bench: Bench, cluster: Cluster) -> dict[str, Contender]:
    """Start everything that is asked; return it by name."""
    nothing = await bench.go_extender(NOTHING)
    plugins = await bench.go_extender(PLUGINS, f"-api={cluster.api}")
    stack = await bench.moorage(cluster.kubeconfig)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which calls are made, and to whom.

    Attributes:
        seconds: After which no new round begins.
    """

    nodes: int
    contenders: Sequence[str]
    rounds: int
    seconds: float
    whole: bool = False

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"{self.nodes} {'whole nodes' if self.whole else 'names'}"

    @property
    def warm_up(self) -> int:
        """Rounds that do not count."""
        return WHOLE_WARM_UP if self.whole else max(WARM_UP, CLUSTER_NODES // self.nodes)

    def job(
        self, cluster: Cluster, found: Mapping[str, Contender], pod: Object | None = None
    ) -> Job:
        """Return the question, about copies of a pod, as a job of the load."""
        return Job(
            api=cluster.api,
            contenders=[found[name] for name in self.contenders],
            nodes=self.nodes,
            rounds=self.rounds,
            warm_up=self.warm_up,
            seconds=self.seconds,
            whole=self.whole,
            changed=HEARTBEATS if self.whole else 0,
            pod=pod or new_pod(),
        )


def questions(*, quick: bool) -> list[Question]:
    """Return what is asked; quickly with few rounds."""
    rounds, seconds, whole_rounds, whole_seconds = (80, 10, 6, 15) if quick else (200, 60, 30, 120)
    names = [
        Question(nodes=count, contenders=BUDGETED, rounds=rounds, seconds=seconds)
        for count in (500, 5000)
    ]
    whole = Question(
        nodes=5000, contenders=COMPARED, rounds=whole_rounds, seconds=whole_seconds, whole=True
    )
    return [*names, whole]


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Ask all questions, one after another, on one cluster."""
    pods = QUICK_PODS_PER_NODE if results.quick else PODS_PER_NODE
    async with opened(directory, progress) as bench:
        progress(f"a cluster of {CLUSTER_NODES} nodes with {pods} pods each")
        cluster = await bench.cluster(CLUSTER_NODES, pods)
        found = await contenders(bench, cluster)
        load = Load(await bench.program(CLIENT))
        for question in questions(quick=results.quick):
            rounds = await load.run(question.job(cluster, found), progress_of(question, progress))
            report(results, question, [*summed_up(question, rounds)])


def progress_of(question: Question, progress: Callable[[str], None]) -> Callable[[int], None]:
    """Return what shows the rounds of a question."""
    total = question.warm_up + question.rounds
    return lambda done: progress(f"{question.title}: {done} of at most {total} rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One contender at one question.

    Attributes:
        answered: Milliseconds of filter plus prioritize, pod by pod, until the last byte of each
            answer is there.
        ratio: Its median to that of the first contender in the same rounds.
        processor: Processor time of all its processes for both calls, the mean.
        feasible: How many nodes remained, the mean.
    """

    contender: str
    answered: Figure
    ratio: float
    processor: float
    feasible: float


def summed_up(question: Question, rounds: Sequence[Round]) -> Iterator[Asked]:
    """Sum up each contender's rounds."""
    reference = _answered(succeeded(rounds, question.contenders[0])).p50
    for name in question.contenders:
        mine = succeeded(rounds, name)
        answered = _answered(mine)
        yield Asked(
            contender=name,
            answered=answered,
            ratio=answered.p50 / reference,
            processor=fmean(r.processor / MS for r in mine),
            feasible=fmean(r.feasible for r in mine),
        )


def report(results: Results, question: Question, asked: Sequence[Asked], part: str = EDGE) -> None:
    """Add the table of a question, and the budgets that are about it."""
    results.tables.append(
        Table(
            part=part,
            title=f"{question.title}, filter then prioritize at once",
            caption="milliseconds until both are answered, p50 / p99; "
            f"{asked[0].answered.count} rounds",
            head=("", "answered", "ratio", "CPU"),
            rows=[
                (
                    one.contender
                    + ("" if one.feasible == asked[0].feasible else f" ({one.feasible:.0f} fit)"),
                    str(one.answered),
                    f"{one.ratio:.2f}",
                    f"{one.processor:.2f}",
                )
                for one in asked
            ],
        )
    )
    ratios = {(question.title, one.contender): one.ratio for one in asked}
    results.verdicts += [
        Verdict(
            part=part,
            work=f"filter + prioritize, {title}, {contender}",
            limit=limit,
            measured=ratios[title, contender],
        )
        for title, contender, limit in BUDGETS
        if (title, contender) in ratios
    ]


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


def _answered(rounds: Sequence[Round]) -> Figure:
    return figure((r.filter.answered + r.prioritize.answered) / MS for r in rounds)
