"""What a run of the bench found, as it is written to bench/out/latest.json."""

import msgspec

from bench.figures import Figure


class EdgeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One contender at one question, all times in milliseconds.

    Attributes:
        question: Such as "5000 names".
        contender: The extender; "go nothing" is the reference.
        pause: Between filter and prioritize.
        filter: Until the answer is decoded, as all times without another definition.
        prioritize: The same.
        both: Filter plus prioritize, pod by pod, without the pause.
        answered: The same as `both`, but only until the last byte of each answer is there.
        ratio: p50 of `both` to that of the reference in the same rounds.
        ratio_p99: The same of p99.
        ratio_answered: The same of `answered`, p50.
        processor: Processor time of all its processes for both calls, the mean.
        failures: Rounds that do not count because a call failed.
        feasible: How many nodes remained, the mean.
        sent: Bytes of both questions, the mean.
        received: Bytes of both answers, the mean.
    """

    question: str
    contender: str
    pause: float
    filter: Figure
    prioritize: Figure
    both: Figure
    answered: Figure
    ratio: float
    ratio_p99: float
    ratio_answered: float
    processor: float
    failures: int
    feasible: float
    sent: float
    received: float


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process, in MiB; pss counts pages that are shared in part."""

    rss: float
    pss: float


class GrowthResult(msgspec.Struct, frozen=True, kw_only=True):
    """One size of cluster.

    Attributes:
        ready_seconds: From the start of all processes until the gateway is ready.
        edge: With all nodes named.
        cycle_bytes: What the gateway sends to its replicas, for each cycle.
        memory: Of each process of Moorage, after it all.
    """

    nodes: int
    pods: int
    ready_seconds: float
    edge: list[EdgeResult]
    cycle_bytes: float
    memory: dict[str, Memory]


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Of the garbage collector in one process.

    Attributes:
        count: How many.
        longest: Milliseconds that the longest took at most: a bucket's upper bound.
        share: Part of the time, 0..1.
    """

    count: int
    longest: float
    share: float


class CliffResult(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles while something else happens.

    Attributes:
        situation: What happens.
        events: How often it did.
        edge: Of each question.
        pauses: Of each process meanwhile.
    """

    situation: str
    events: int
    edge: list[EdgeResult]
    pauses: dict[str, Pauses]


class Cliffs(msgspec.Struct, frozen=True, kw_only=True):
    """All situations on one cluster, the first at rest; memory is in the end."""

    nodes: int
    pods: int
    situations: list[CliffResult]
    memory: dict[str, Memory]


class ReplicasResult(msgspec.Struct, frozen=True, kw_only=True):
    """A number of scorers with a score plugin that takes time for each node.

    Attributes:
        nodes: That are named.
        microseconds: That the plugin takes for a node.
        scorers: How many, and when they share a cycle's nodes.
        answered: Filter plus prioritize, until the last byte of each answer is there, in ms.
        ratio: Its p50 to that of one scorer.
    """

    nodes: int
    microseconds: float
    scorers: str
    answered: Figure
    ratio: float


class RecordsResult(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles whose decisions are kept, and cycles whose are not.

    Attributes:
        nodes: That are named.
        pods: How they differ, "unlike" or "numbered".
        answered: Filter plus prioritize, until the last byte of each answer is there, in ms.
        answered_without: The same without records.
        ratio: Of the two, p50.
        processor_ratio: Of the processor time of all processes, p50.
    """

    nodes: int
    pods: str
    answered: Figure
    answered_without: Figure
    ratio: float
    processor_ratio: float


class SchedulingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Pods a second through a real kube-scheduler.

    Attributes:
        cluster: The kind of cluster, "heavy" or "light".
        nodes: How many it has.
        sampling: percentageOfNodesToScore, "default" or "100 %".
        contender: The extender, or how it is used.
        pods_per_second: The median of the runs.
        each: Every run.
        ratio: To the Go extender that does nothing, or does nothing but bind, in the same runs.
        processor: Milliseconds of processor time a pod of each of its processes, by name; medians.
    """

    cluster: str
    nodes: int
    sampling: str
    contender: str
    pods_per_second: float
    each: list[float]
    ratio: float
    processor: dict[str, float]

    @property
    def series(self) -> str:
        """Which runs it can be compared with."""
        return f"{self.cluster} cluster, sampling {self.sampling}"

    @property
    def processor_total(self) -> float:
        """Milliseconds of processor time a pod of all its processes."""
        return sum(self.processor.values())


class BindResult(msgspec.Struct, frozen=True, kw_only=True):
    """Binds on a real API server; the latency is in milliseconds."""

    contender: str
    in_flight: int
    latency: Figure
    binds_per_second: float
    failures: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, and whether it was kept; `measured`, in `unit`, is None if it was not measured."""

    part: str
    work: str
    bound: str
    measured: float | None
    kept: bool | None
    unit: str = "x"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when it was measured.

    Attributes:
        load: The load averages before the run: more than a few tenths means a busy machine.
    """

    date: str
    processor: str
    cores: int
    memory_gib: float
    python: str
    kernel: str
    commit: str
    load: tuple[float, float, float]


class Results(msgspec.Struct, kw_only=True):
    """All of a run."""

    machine: Machine
    quick: bool
    seconds: float = 0
    edge: list[EdgeResult] = []
    scheduling: list[SchedulingResult] = []
    pauses: dict[str, Figure] = {}
    """Milliseconds between filter and prioritize in kube-scheduler, by series."""
    kubernetes: str = ""
    """The release of the control plane."""
    binds: list[BindResult] = []
    growth: list[GrowthResult] = []
    cliffs: Cliffs | None = None
    replicas: list[ReplicasResult] = []
    records: list[RecordsResult] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []
