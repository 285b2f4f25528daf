"""One round: ask Prometheus and read the nodes, then write those that need it.

`annotate --once` runs one and shows it; the Deployment runs one after the other.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from cli.annotate.cluster import Nodes
from cli.annotate.measures import measures
from cli.annotate.metrics import PATCHES, SAMPLES
from cli.annotate.options import AnnotateOptions
from cli.annotate.planning import Need, Planned, Planner, Values
from moorage.measurements import PrometheusError
from moorage.measurements.prometheus.asking import ask, by_measure, nodes_by_preset
from moorage.models import NodeManifest
from moorage_host.kube import KubeError


class Result(StrEnum):
    """What became of a node that was to be written."""

    WRITTEN = "written"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One node after a round.

    Attributes:
        result: None if it was not to be written.
        problem: Why it failed; empty if it did not.
    """

    planned: Planned
    result: Result | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done; `unknown_nodes` are nodes that Prometheus has and the cluster has not."""

    nodes: Sequence[Planned]
    unknown_nodes: Sequence[str]

    @property
    def work(self) -> int:
        """How many nodes are to be written."""
        return sum(planned.need.is_work for planned in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that ended."""

    nodes: Sequence[Done]
    unknown_nodes: Sequence[str] = ()

    def count(self, what: Result | Need) -> int:
        """Return how many nodes had this result, or this need."""
        return sum(what in (done.result, done.planned.need) for done in self.nodes)

    @property
    def failure(self) -> str:
        """Why the round is a failure: something was to be written and nothing could be."""
        failed = [done for done in self.nodes if done.result is Result.FAILED]
        if not failed or self.count(Result.WRITTEN):
            return ""
        return f"none of {len(failed)} nodes could be written: {failed[0].problem}"


class Annotator:
    """Runs rounds.

    Args:
        options: What was asked for.
        nodes: The nodes of the cluster.
        now: Returns the time.
    """

    def __init__(
        self,
        options: AnnotateOptions,
        nodes: Nodes,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._options = options
        self._nodes = nodes
        self._now = now
        self._measures = measures(options.window)
        self._planner = Planner(
            prefix=options.prefix,
            threshold=options.threshold / 100,
            refresh=options.refresh,
            layout=options.prometheus.layout,
        )

    async def plan(self) -> Plan:
        """Find out what is to be written: nothing, without an answer of Prometheus.

        Raises:
            PrometheusError: It does not answer, or knows none of the nodes.
            KubeError: The nodes cannot be read.
            TimeoutError: The API server does not answer in time.
        """
        now = self._now()
        values = await self._ask()
        nodes = await self._nodes.read()
        plan = Plan(
            nodes=self._planner.plan(nodes, values, now),
            unknown_nodes=self._planner.unknown_nodes(nodes, values),
        )
        self._check(nodes, plan)
        return plan

    async def carry_out(
        self, plan: Plan, progress: Callable[[int], None] = lambda _: None
    ) -> Round:
        """Write what is to be written; call *progress* with how many nodes are done.

        The outcome of each node's request is in the result; nothing is raised.
        """
        places = asyncio.Semaphore(self._options.concurrency)
        written = 0

        async def carry_out(planned: Planned) -> Done:
            nonlocal written
            if not planned.need.is_work:
                return Done(planned=planned)
            async with places:
                done = await self._write(planned)
            written += 1
            progress(written)
            return done

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(carry_out(planned)) for planned in plan.nodes]
        return Round(nodes=[task.result() for task in tasks], unknown_nodes=plan.unknown_nodes)

    async def _ask(self) -> Values:
        settings = self._options.prometheus
        layout = settings.layout
        values = by_measure(await ask(settings, self._measures, layout), layout)
        if not values:
            found = await nodes_by_preset(settings, self._measures)
            counts = ", ".join(f"{preset} ({count})" for preset, count in found.items())
            advice = f"it knows nodes under --preset {counts}" if found else "are nodes scraped?"
            raise PrometheusError(
                f"Prometheus at {settings.address} measures no node by the label "
                f'"{layout.label}": {advice}'
            )
        SAMPLES.inc(sum(map(len, values.values())))
        return values

    def _check(self, nodes: Sequence[NodeManifest], plan: Plan) -> None:
        """Refuse to go on if names are evidently of another kind."""
        if not nodes or any(planned.need is not Need.NOT_MEASURED for planned in plan.nodes):
            return
        ours = self._options.prometheus.layout.key_of_node(nodes[0])
        raise PrometheusError(
            f'Prometheus measures nodes such as "{plan.unknown_nodes[0]}", the cluster has nodes '
            f'such as "{ours or nodes[0].name}": choose another --preset or --node-format'
        )

    async def _write(self, planned: Planned) -> Done:
        problem = ""
        try:
            exists = await self._nodes.annotate(planned.node, planned.annotations)
            result = Result.WRITTEN if exists else Result.GONE
        except (KubeError, TimeoutError) as error:
            result, problem = Result.FAILED, str(error)
        PATCHES.labels(result).inc()
        return Done(planned=planned, result=result, problem=problem)
