"""Filter and prioritize at the edge: Moorage and the Go extenders, in turn, on one cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bench.contenders import Bench, Cluster, GoExtender, Stack
from bench.figures import Figure, figure
from bench.goprograms import CLIENT, NOTHING, PLUGINS
from bench.load import Call, Contender, Job, Load, LoadError, Round
from bench.policies import COUNTS, PER_NODE_PLUGINS, Form, policy, profile_name
from bench.results import EdgeResult

REFERENCE = "go nothing"
GO_PLUGINS = "go 3+3"
FLOOR = "floor"
"""HTTP and one message over gRPC a call, in Python; understands names only."""

MAIN = "moorage 3+3"
"""What the budgets are about: three filters and three scores in batch form, one scorer."""

NUMBERED = f"{MAIN}, numbered pods"
"""The same processes and the same profile, asked about pods as those of a StatefulSet."""

MANY_SCORERS = 3
SCATTERED = f"moorage {MANY_SCORERS} scorers"

CLUSTER_NODES = 5000
PLUGIN_FILES = (PER_NODE_PLUGINS,)
WARM_UP = 10
"""At least; more if the cluster has more nodes than so many rounds name: numbered pods may be known
on all of them by then."""

WHOLE_WARM_UP = 2
HEARTBEATS = 17
"""Nodes that change from one round to the next with whole nodes: kubelet's five minutes, 5,000
nodes, and a round in about a second."""

MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of whom.

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
        """What people call it."""
        return f"{self.nodes} {'whole nodes' if self.whole else 'names'}"

    @property
    def warm_up(self) -> int:
        """Rounds that do not count."""
        return WHOLE_WARM_UP if self.whole else max(WARM_UP, CLUSTER_NODES // self.nodes)


async def contenders(bench: Bench, cluster: Cluster, *, quick: bool) -> dict[str, Contender]:
    """Start everything that is asked; return it by name."""
    found = [
        of_go(REFERENCE, await bench.go_extender(NOTHING)),
        of_go(GO_PLUGINS, await bench.go_extender(PLUGINS, f"-api={cluster.api}")),
    ]
    url, pids = await bench.floor()
    found.append(Contender(FLOOR, url, pids=pids))
    stack = await bench.moorage("moorage", cluster.kubeconfig, policy(), plugins=PLUGIN_FILES)
    found += _profiles(stack, "moorage", "batch", COUNTS)
    found += _profiles(stack, "moorage per node", "per node", COUNTS[1:])
    if not quick:
        more = await bench.moorage(
            "moorage-scorers",
            cluster.kubeconfig,
            policy(),
            scorers=MANY_SCORERS,
            plugins=PLUGIN_FILES,
        )
        found += _profiles(more, SCATTERED, "batch", COUNTS)
        found += _profiles(more, f"{SCATTERED} per node", "per node", COUNTS[1:])
    by_name = {contender.name: contender for contender in found}
    # The last, so that its turn hardly ever comes directly after that of the same processes.
    return {**by_name, NUMBERED: replace(by_name[MAIN], name=NUMBERED, pods="numbered")}


async def measure(
    bench: Bench,
    cluster: Cluster,
    questions: Sequence[Question],
    found: Mapping[str, Contender],
    say: Callable[[str], None],
) -> list[EdgeResult]:
    """Ask all questions, one after another."""
    load = Load(await bench.program(CLIENT))
    results: list[EdgeResult] = []
    for question in questions:
        title = question.title + (f", pause of {question.pause:g} ms" if question.pause else "")
        work = job(question, cluster, found)
        total = work.warm_up + work.rounds

        def progress(done: int, title: str = title, total: int = total) -> None:
            say(f"{title}: {done} of at most {total} rounds")

        rounds = await load.run(work, progress)
        results += summed_up(question, rounds)
    return results


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
            ratio_p99=both.p99 / reference[0].p99,
            ratio_answered=answered.p50 / reference[1].p50,
            processor=_mean(r.processor / MS for r in mine),
            failures=sum(bool(r.failure) for r in rounds if r.contender == name),
            feasible=_mean(r.feasible for r in mine),
            sent=_mean(_of_both(r, lambda call: call.sent) for r in mine),
            received=_mean(_of_both(r, lambda call: call.received) for r in mine),
        )


def of_go(name: str, extender: GoExtender) -> Contender:
    """Name a Go extender."""
    return Contender(name, extender.url, pids=[extender.pid])


def _profiles(stack: Stack, name: str, form: Form, counts: Sequence[int]) -> Iterator[Contender]:
    for count in counts:
        profile = profile_name(form, count)
        pids = [*stack.pids.values()]
        yield Contender(f"{name} {count}+{count}", stack.addresses.extender, profile, pids)


def job(question: Question, cluster: Cluster, found: Mapping[str, Contender]) -> Job:
    """Word a question for the load."""
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


def _mean(values: Iterator[float]) -> float:
    return figure(values).mean
