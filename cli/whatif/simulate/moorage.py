"""Moorage's part of a scheduling cycle: what gateway and services do, in this process.

The same engines run the same plugins; verdicts and scores go to the scheduler as the edge of the
gateway would write them. Nothing is cached, and plugins see the copy of the cluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError
from moorage.execution import Profile, Supervisor
from moorage_host.plugins.host import Policy
from sandbox.scheduler.cluster.cache import Cache, KnownPod
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.cycle.decision import Attempt
from sandbox.scheduler.cycle.diagnosis import EXTENDER, Rejection
from sandbox.scheduler.cycle.extending import Offered
from sandbox.scheduler.extenders.client import Extender, ExtenderError
from services.filter.engine import PluginRejection, run_filters
from services.scorer.engine import ScoreRun, run_scores

POINTS = 10
"""What kube-scheduler multiplies an extender's scores by, beside the weight."""

Positions = npt.NDArray[np.intp]


@dataclass(slots=True, kw_only=True)
class Opinion:
    """What Moorage thought in the newest cycle.

    Attributes:
        rejected: Why nodes were rejected, by name.
        names: The nodes that were scored, in order of their rows.
        run: Their scores; None if there are none.
        claimants: The plugins that had the pod claim its node.
    """

    rejected: dict[str, PluginRejection] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    run: ScoreRun | None = None
    claimants: tuple[str, ...] = ()


class InProcess:
    """Moorage as an extender of the scheduling cycle; see `Extending`.

    Attributes:
        names_only: It needs no nodes, only their names.
        opinion: That of the newest cycle.
        failures: How many cycles went on without a plugin, by the problem.
    """

    names_only = True

    def __init__(
        self,
        cache: Cache,
        config: ExtenderConfig,
        *,
        filters: Policy,
        scorers: Policy,
        score_scale: int,
    ) -> None:
        """Run the policies' plugins on what *cache* knows, for the pods that *config* sends."""
        self._cache = cache
        self._extender = Extender(config)
        self._points = config.weight * POINTS
        self._filters = filters
        self._scorers = scorers
        self._scale = score_scale
        self.opinion = Opinion()
        self.failures: dict[str, int] = {}

    @property
    def points_of_100(self) -> float:
        """The points that kube-scheduler adds for a total of 100, before rounding."""
        return float(self._scale * self._points)

    async def filter(self, attempt: Attempt, nodes: Offered) -> Offered:
        """Return the nodes that the filter plugins accept, or only the one that is claimed.

        Raises:
            ExtenderError: A plugin failed whose failure aborts the cycle.
        """
        self.opinion = Opinion()
        attempt.offered = attempt.accepted = 0
        pod = attempt.pod.pod
        if not nodes or not self._extender.is_interested(pod):
            return nodes
        attempt.offered = attempt.accepted = len(nodes)
        profile = self._filters.profiles.get(pod.spec.scheduler_name)
        if profile is None or not profile.plugins:
            return nodes
        selected, order = self._select(nodes)
        supervisor = Supervisor()
        try:
            run = await run_filters(profile, pod, selected, supervisor)
        except PluginFailedError as error:
            raise ExtenderError(f"filter service: {error}") from error
        self._note(supervisor)
        names = list(nodes)
        codes = np.empty(len(names), np.uint16)
        codes[order] = run.codes
        for position in codes.nonzero()[0].tolist():
            reason = run.reasons[codes[position] - 1]
            self.opinion.rejected[names[position]] = reason
            attempt.diagnosis.rejections[names[position]] = Rejection(
                EXTENDER, (reason.rejection.reason,), reason.rejection.unresolvable
            )
        feasible: Offered = {
            name: nodes[name] for name in names if name not in self.opinion.rejected
        }
        if run.claimants and feasible:
            self.opinion.claimants = tuple(run.claimants)
            feasible = await self._claimed(attempt.pod, feasible)
        attempt.accepted = len(feasible)
        return feasible

    async def scores(self, pod: KnownPod, nodes: Offered) -> dict[str, int]:
        """Return the points that kube-scheduler adds, by node; none without an opinion."""
        profile = self._scorers.profiles.get(pod.pod.spec.scheduler_name)
        if profile is None or not self._extender.is_interested(pod.pod):
            return {}
        totals = await self._totals(profile, pod, nodes)
        if totals is None:
            return {}
        whole = (totals * (self._scale / 100) + 0.5).astype(np.int64)
        points = dict(zip(nodes, (whole * self._points).tolist(), strict=True))
        # The edge leaves out nodes at 0 unless all are.
        return {name: each for name, each in points.items() if each} or points

    async def _claimed(self, pod: KnownPod, feasible: Offered) -> Offered:
        """Return the best node, as the gateway claims it."""
        names = list(feasible)
        best = np.arange(len(names))
        profile = self._scorers.profiles.get(pod.pod.spec.scheduler_name)
        if len(names) > 1 and profile is not None:
            totals = await self._totals(profile, pod, feasible)
            if totals is not None:
                best = np.flatnonzero(totals == totals.max())
        chosen = names[int(best[crc32(pod.uid.encode()) % len(best)])]
        return {chosen: feasible[chosen]}

    async def _totals(
        self, profile: Profile, pod: KnownPod, nodes: Offered
    ) -> npt.NDArray[np.float64] | None:
        """Return the totals in the order of *nodes*; None if no plugin has an opinion."""
        if not profile.plugins:
            return None
        selected, order = self._select(nodes)
        supervisor = Supervisor()
        try:
            run = await run_scores(profile, pod.pod, selected, supervisor)
        except PluginFailedError as error:
            self._count(f"no scores: {error}")  # kube-scheduler goes on without them
            return None
        self._note(supervisor)
        if run.totals is None:
            return None
        names = list(nodes)
        self.opinion.names, self.opinion.run = [names[i] for i in order.tolist()], run
        totals = np.empty(len(names))
        totals[order] = run.totals.astype(np.float32)  # their precision on the wire
        return totals

    def _select(self, nodes: Offered) -> tuple[Nodes, Positions]:
        """Return nodes in order of their rows, as replicas see them, and the position of each."""
        rows = self._cache.rows_of(nodes)
        order = np.argsort(rows)
        return self._cache.snapshot.nodes(rows[order]), order

    def _note(self, supervisor: Supervisor) -> None:
        for run in supervisor.runs:
            if run.failure:
                self._count(f"{run.plugin} was left out: {run.failure}")

    def _count(self, problem: str) -> None:
        self.failures[problem] = self.failures.get(problem, 0) + 1

    def parts(self, node: str) -> Mapping[str, float]:
        """Return the points that each score plugin gives a node in the newest cycle."""
        return dict(self._parts(node))

    def _parts(self, node: str) -> Iterator[tuple[str, float]]:
        run = self.opinion.run
        if run is None or node not in self.opinion.names:
            return
        position = self.opinion.names.index(node)
        weights = sum(each.weight for each in run.scores)
        for each in run.scores:
            share = float(each.normalized[position]) * each.weight / weights
            yield each.plugin, share / 100 * self.points_of_100
