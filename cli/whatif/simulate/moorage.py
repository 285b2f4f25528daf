"""Moorage's part of a scheduling cycle: what gateway and services do, in this process; and why.

The same engines run the same plugins; verdicts and scores go to the scheduler as the edge of the
gateway would write them. Nothing is cached, and plugins see the copy of the cluster.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from math import isclose

import msgspec
import numpy as np
import numpy.typing as npt

from cli.whatif.engines import filtered, scored
from gateway.cycle.answers import claimed, whole
from gateway.whatif.comparing import Outcome
from moorage import PluginFailedError
from moorage.execution import PluginRejection, Profile, Supervisor, owner_of
from moorage.plugin.cycle_state import KeptValue, annotations_at
from moorage_host.kube_scheduler import ExtenderConfig
from moorage_host.kube_scheduler.attempt import EXTENDER, SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.extender import Extender, ExtenderError
from moorage_host.kube_scheduler.extenders import Candidates, Offered
from moorage_host.plugins.host import Policy
from moorage_host.plugins.replica import Engine

NOTHING = Outcome(rows=np.zeros(0, np.intp))


MOST_REMARKS = 20
"""Unlike remarks that are kept; notes of plugins may name each pod."""


class InProcess:
    """Moorage as an extender of the scheduling cycle; see `Extending`.

    Attributes:
        names_only: It needs no nodes, only their names.
        rejected: Why nodes were rejected in the newest cycle, by name.
        claimants: The plugins that had its pod claim its node.
        remarks: How many cycles went on without a plugin, or have a plugin's note, by its text.
    """

    names_only = True

    def __init__(
        self,
        cache: SchedulerCache,
        config: ExtenderConfig,
        *,
        filters: Policy,
        scorers: Policy,
        score_scale: int,
    ) -> None:
        """Run the policies' plugins on what *cache* knows, for the pods that *config* sends."""
        self._cache = cache
        self._extender = Extender(config)
        self._points = config.points
        self._filters = filters
        self._scorers = scorers
        self._scale = score_scale
        self.rejected: dict[str, PluginRejection] = {}
        self.claimants: Sequence[str] = ()
        self._ranking = NOTHING
        self._kept: Mapping[str, KeptValue] = {}
        self.remarks: dict[str, int] = {}

    @property
    def points_of_100(self) -> float:
        """The points that kube-scheduler adds for a total of 100, before rounding."""
        return float(self._scale * self._points)

    async def filter(self, attempt: SchedulingAttempt, nodes: Offered) -> Offered:
        """Return the nodes that the filter plugins accept, or only the one that is claimed.

        Raises:
            ExtenderError: A plugin failed whose failure aborts the cycle.
        """
        self.rejected, self.claimants, self._ranking, self._kept = {}, (), NOTHING, {}
        attempt.offered = attempt.accepted = 0
        pod = attempt.pod.pod
        is_asked = self._extender.config.filter_verb and self._extender.is_interested(pod)
        if not nodes or not is_asked:
            return nodes
        attempt.offered = attempt.accepted = len(nodes)
        profile = self._filters.profiles.get(pod.spec.scheduler_name)
        if profile is None or not profile.plugins:
            return nodes
        outcome = await self._filtered(profile, attempt.pod, nodes)
        if outcome.verdicts is not None:
            self._kept = outcome.verdicts.kept
        rows = self._cache.rows_of(nodes)
        for name, position in zip(nodes, np.searchsorted(outcome.rows, rows).tolist(), strict=True):
            if reason := outcome.reason(position):
                self.rejected[name] = reason
                attempt.rejections[name] = msgspec.structs.replace(reason, plugin=EXTENDER)
        feasible: Offered = {n: json for n, json in nodes.items() if n not in self.rejected}
        if outcome.claimants and feasible:
            self.claimants = outcome.claimants
            feasible = await self._claimed(attempt.pod, feasible)
        attempt.accepted = len(feasible)
        return feasible

    async def scores(self, pod: KnownPod, nodes: Offered) -> dict[str, int]:
        """Return the points that kube-scheduler adds, by node; none without an opinion."""
        profile = self._scorers.profiles.get(pod.pod.spec.scheduler_name)
        if profile is None or not self._extender.is_interested(pod.pod):
            return {}
        if not self._extender.config.prioritize_verb:
            return dict.fromkeys(nodes, 0)
        totals = await self._totals(profile, pod, nodes)
        if totals is None:
            return {}
        sent = whole(totals, self._scale) * self._points
        points: dict[str, int] = dict(zip(nodes, sent.tolist(), strict=True))
        # The edge leaves out nodes at 0 unless all are.
        return {name: each for name, each in points.items() if each} or points

    async def preempt(self, pod: KnownPod, candidates: Candidates) -> Candidates:
        """Return the nodes that the filter plugins accept without the victims.

        Raises:
            ExtenderError: A plugin failed whose failure aborts the cycle.
        """
        profile = self._filters.profiles.get(pod.pod.spec.scheduler_name)
        asked = self._extender.config.preempt_verb and self._extender.is_interested(pod.pod)
        if profile is None or not profile.plugins or not asked or not candidates:
            return candidates
        with ExitStack() as trials:
            for node, victims in candidates.items():
                trial = trials.enter_context(self._cache.trial(self._cache.nodes[node]))
                for victim in victims:
                    trial.remove(victim)
            outcome = await self._filtered(profile, pod, candidates)
        places = dict(zip(outcome.rows.tolist(), range(len(outcome.rows)), strict=True))
        rows = zip(candidates, self._cache.rows_of(candidates).tolist(), strict=True)
        left = {node for node, row in rows if not outcome.reason(places[row])}
        return {node: victims for node, victims in candidates.items() if node in left}

    def parts(self, node: str) -> Mapping[str, float]:
        """Return the points that each score plugin gives a node in the newest cycle."""
        (row,) = self._cache.rows_of([node])
        position = self._ranking.position_of(row)
        parts = self._ranking.parts(position) if position is not None else {}
        return {plugin: part / 100 * self.points_of_100 for plugin, part in parts.items()}

    def annotations(self, node: str) -> dict[str, str]:
        """Return what the pod of the newest cycle gets on a node."""
        return annotations_at(self._kept, node)

    async def _filtered(self, profile: Profile, pod: KnownPod, nodes: Iterable[str]) -> Outcome:
        try:
            return await self._run(filtered, profile, pod, nodes)
        except PluginFailedError as error:
            raise ExtenderError(f"filter service: {error}") from error

    async def _claimed(self, pod: KnownPod, feasible: Offered) -> Offered:
        """Return the best node, as the gateway claims it."""
        names, totals = list(feasible), None
        profile = self._scorers.profiles.get(pod.pod.spec.scheduler_name)
        if len(names) > 1 and profile is not None:
            totals = await self._totals(profile, pod, feasible)
        chosen = names[claimed(pod.uid, names, totals)]
        return {chosen: feasible[chosen]}

    async def _totals(
        self, profile: Profile, pod: KnownPod, nodes: Offered
    ) -> npt.NDArray[np.float64] | None:
        """Return the totals in the order of *nodes*; None if no plugin has an opinion."""
        if not profile.plugins:
            return None
        try:
            outcome = await self._run(scored, profile, pod, nodes)
        except PluginFailedError as error:
            self._count(f"no scores: {error}")  # kube-scheduler goes on without them
            return None
        if outcome.scores is None:
            return None
        self._ranking = outcome
        positions = np.searchsorted(outcome.rows, self._cache.rows_of(nodes))
        totals: npt.NDArray[np.float64] = outcome.totals[positions]
        return totals

    async def _run(
        self, engine: Engine[Outcome], profile: Profile, pod: KnownPod, nodes: Iterable[str]
    ) -> Outcome:
        """Run an engine on nodes in order of their rows, as replicas see them."""
        rows = np.sort(self._cache.rows_of(nodes))
        supervisor = Supervisor(owner=owner_of(pod.pod))
        outcome = await engine(profile, pod.pod, self._cache.snapshot.nodes(rows), supervisor)
        for failure in outcome.failures:
            plugin, _, problem = failure.partition(": ")
            self._count(f"{plugin} was left out: {problem}")
        for run in supervisor.runs:
            remark = f"{run.plugin} notes: {run.note}"
            if run.note and (remark in self.remarks or len(self.remarks) < MOST_REMARKS):
                self._count(remark)
        return outcome

    def _count(self, remark: str) -> None:
        self.remarks[remark] = self.remarks.get(remark, 0) + 1


SHOWN = 3
"""Plugins that a sentence names, those that differ most."""

SMALLEST = 0.5
"""Points below which a difference is not shown."""


def why_not(attempt: SchedulingAttempt, moorage: InProcess, chosen: str, other: str) -> str:
    """Return why *chosen* was chosen and not *other*, which is empty if that is no node."""
    if not other:
        return "a node fits here"
    if rejection := attempt.rejections.get(other):
        plugin, reason = _rejection(moorage, other, rejection)
        return f"{plugin} rejects {other}: {reason}"
    if claimants := moorage.claimants:
        text = f"claimed for {', '.join(claimants)}"
        one, another = moorage.parts(chosen), moorage.parts(other)
        if isclose(sum(one.values()), sum(another.values())):
            return f"{text}, with as many points as {other}: by lot"
        return _with_points(text, one, another)
    if other not in attempt.names:
        return f"{other} was not in the sample of nodes"
    lead = int(attempt.points[attempt.names.index(chosen)])
    lead -= int(attempt.points[attempt.names.index(other)])
    if lead <= 0:
        return f"as many points as {other}: by lot"
    parts = (_parts(attempt, moorage, node) for node in (chosen, other))
    return _with_points(f"{lead} points ahead of {other}", *parts)


def why_pending(attempt: SchedulingAttempt, moorage: InProcess) -> str:
    """Return why a pod fits nowhere: `2 Insufficient cpu (NodeResourcesFit)`, most nodes first."""
    counts = Counter(
        _rejection(moorage, node, rejection) for node, rejection in attempt.rejections.items()
    )
    left = attempt.nodes - len(attempt.rejections)
    if left and (reason := attempt.conflict or attempt.elsewhere):
        counts["NodeAffinity", reason] += left
    reasons = ", ".join(
        f"{count} {reason} ({plugin})" for (plugin, reason), count in counts.most_common()
    )
    return f"0/{attempt.nodes} nodes: {reasons}"


def _rejection(moorage: InProcess, node: str, rejection: PluginRejection) -> tuple[str, str]:
    ours = moorage.rejected.get(node)
    if rejection.plugin == EXTENDER and ours is not None:
        return ours.plugin, ours.text
    return rejection.plugin, rejection.text


def _parts(attempt: SchedulingAttempt, moorage: InProcess, node: str) -> Mapping[str, float]:
    """Return the points of a node by plugin; those of in-tree plugins are marked."""
    position = attempt.names.index(node)
    in_tree = {
        f"in-tree {each.plugin}": float(each.weight * each.normalized[position])
        for each in attempt.in_tree
    }
    return {**in_tree, **moorage.parts(node)}


def _with_points(text: str, one: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Return a text with the plugins that add most to the lead of one node on another."""
    leads = {name: points - other.get(name, 0.0) for name, points in one.items()}
    ranked = sorted(leads.items(), key=lambda part: -abs(part[1]))[:SHOWN]
    parts = [f"{plugin} {lead:+.0f}" for plugin, lead in ranked if abs(lead) >= SMALLEST]
    return f"{text}: {', '.join(parts)}" if parts else text
