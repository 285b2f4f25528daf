"""What is counted about cycles."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry, Counter

from gateway.decisions.cycle import NodeScores, SchedulingCycle
from gateway.decisions.records import Decision, FilterRecord, PhaseName, PluginRecord, ScoreRecord
from moorage_host.process.histogram import FastHistogram
from moorage_host.tracing.span import trace_id_of

BindCheckOutcome = Literal["spared", "passed", "rejected", "failed"]

Mark = Callable[[float, Mapping[str, str]], None]
"""Takes a value that was observed, as an example of its bucket."""

SECONDS = tuple(0.0001 * 2**power for power in range(16))


class CycleMetrics:
    """The metrics of cycles; an observer of them, for what is known at their end."""

    def __init__(self, registry: CollectorRegistry) -> None:
        phase = FastHistogram(
            "moorage_cycle_duration_seconds",
            "Time of each phase of a cycle in the replica.",
            ["phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self._filter = phase.observer("filter")
        self._score = phase.observer("score")
        self._phase_examples = {name: phase.marker(name) for name in ("filter", "score")}
        whole = FastHistogram(
            "moorage_scheduling_cycle_seconds",
            "Time of a scheduling cycle, from kube-scheduler's call to the last score.",
            buckets=SECONDS,
            registry=registry,
        )
        self._whole, self._whole_example = whole.observer(), whole.marker()
        queue = FastHistogram(
            "moorage_cycle_queue_seconds",
            "Time that a cycle waited for those before it.",
            buckets=SECONDS,
            registry=registry,
        )
        self.queued = queue.observer()
        """Note how many seconds a cycle waited for its turn."""
        self._queue_example = queue.marker()
        plugins = FastHistogram(
            "moorage_plugin_execution_duration_seconds",
            "Time of a plugin in one cycle, at all its extension points of that phase.",
            ["plugin", "phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self._plugins, self._plugin_examples = plugins.observer, plugins.marker
        self._plugin_marks: dict[tuple[str, str], Mark] = {}
        self._failures = Counter(
            "moorage_plugin_failures",
            "Cycles that went on without a plugin because it failed.",
            ["plugin", "phase"],
            registry=registry,
        )
        self._neutral = Counter(
            "moorage_neutral_scores",
            "Cycles in which a score plugin did not affect the order: it skipped the pod, or gave "
            "all nodes the same score.",
            ["plugin"],
            registry=registry,
        )
        self._rounded = Counter(
            "moorage_rounded_scores",
            "Cycles in which rounding to kube-scheduler's whole numbers made worse nodes equal to "
            "the best, see scoreScale.",
            registry=registry,
        )
        self._rejected = Counter(
            "moorage_rejected_nodes",
            "Nodes that a filter plugin rejected. Those that kube-scheduler's own filters rejected "
            "before are not among them.",
            ["plugin"],
            registry=registry,
        )
        self._foreign = Counter(
            "moorage_foreign_pods",
            "Calls for pods whose schedulerName has no profile here: all nodes passed.",
            registry=registry,
        )
        self._claims = Counter(
            "moorage_claims", "Nodes claimed for pods in their cycle.", registry=registry
        )
        self._bind_checks = Counter(
            "moorage_bind_checks",
            "Binds for which filter plugins were asked about the node again (passed, rejected, or "
            "failed if they could not be asked), or not, as nothing had changed (spared).",
            ["outcome"],
            registry=registry,
        )
        self._stale = Counter(
            "moorage_stale_calls",
            "Calls that failed since the API server was silent for longer than --max-cache-age.",
            registry=registry,
        )
        self.stale = self._stale.inc
        """Count a call that failed since the state is too old."""
        self._scattered = Counter(
            "moorage_scattered_cycles",
            "Phases of cycles that several replicas shared.",
            ["phase"],
            registry=registry,
        )
        cached = Counter(
            "moorage_cached_phases",
            "Phases of cycles in which replicas asked plugins about no node (whole) or not all "
            "nodes (part), since the answers for equal pods were cached.",
            ["phase", "extent"],
            registry=registry,
        )
        self._cached = {
            (phase, whole): cached.labels(phase, extent)
            for phase in ("filter", "score")
            for whole, extent in ((True, "whole"), (False, "part"))
        }
        self._invalid = Counter(
            "moorage_invalid_results",
            "Results of replicas that were refused because they cannot be right.",
            ["service"],
            registry=registry,
        )

    def ended(self, cycle: SchedulingCycle) -> None:
        """Observe a cycle that has ended; its values lead to the decision, and to the trace."""
        decision, score = cycle.decision, cycle.decision.score
        leads_to = _leads_to(decision)
        self._whole(decision.seconds)
        self._whole_example(decision.seconds, leads_to)
        self._queue_example(decision.queue_seconds, leads_to)
        for phase, record in (("filter", decision.filter or decision.preempt), ("score", score)):
            if record is not None and record.nodes > record.cached_nodes:
                self._phase_examples[phase](record.seconds, leads_to)
                for plugin in record.plugins:
                    mark = self._plugin_marks.get((plugin.plugin, phase))
                    if mark is None:
                        mark = self._plugin_examples(plugin.plugin, phase)
                        self._plugin_marks[plugin.plugin, phase] = mark
                    mark(plugin.seconds, leads_to)
        if score is not None:
            self._ranked(score, cycle.scores)

    def bound(self, decision: Decision) -> None:
        """Do nothing: the binder counts binds."""

    def filtered(self, record: FilterRecord) -> None:
        """Observe what filter replicas did."""
        self._filter(record.seconds)
        if record.cached_nodes:
            self._cached["filter", record.cached_nodes == record.nodes].inc()
        self._observe_plugins(record.plugins, "filter")
        if record.shards > 1:
            self._scattered.labels("filter").inc()

    def rejected(self, record: FilterRecord) -> None:
        """Count the rejections of a filter phase, cached or not."""
        for plugin in record.plugins:
            if plugin.rejected:
                self._rejected.labels(plugin.plugin).inc(plugin.rejected)

    def scored(self, record: ScoreRecord) -> None:
        """Observe what scorer replicas did."""
        self._score(record.seconds)
        if record.cached_nodes:
            self._cached["score", record.cached_nodes == record.nodes].inc()
        self._observe_plugins(record.plugins, "score")
        if record.shards > 1:
            self._scattered.labels("score").inc()

    def claimed(self) -> None:
        """Count a claim."""
        self._claims.inc()

    def bind_checked(self, outcome: BindCheckOutcome) -> None:
        """Count a bind by whether its node was checked again."""
        self._bind_checks.labels(outcome).inc()

    def foreign(self) -> None:
        """Count a call for a pod that is not ours."""
        self._foreign.inc()

    def invalid_result(self, service: str) -> None:
        """Count a result that cannot be right."""
        self._invalid.labels(service).inc()

    def _ranked(self, record: ScoreRecord, scores: NodeScores | None) -> None:
        if record.tied:
            self._rounded.inc()
        for plugin in record.plugins:
            if plugin.skipped:
                self._neutral.labels(plugin.plugin).inc()
        for each in scores.plugins if scores is not None else ():
            if _is_same(each.normalized):
                self._neutral.labels(each.plugin).inc()

    def _observe_plugins(self, plugins: Iterable[PluginRecord], phase: PhaseName) -> None:
        for plugin in plugins:
            self._plugins(plugin.plugin, phase)(plugin.seconds)
            if plugin.failure:
                self._failures.labels(plugin.plugin, phase).inc()


def _leads_to(decision: Decision) -> dict[str, str]:
    """Return what an exemplar has: at most 128 characters, and no name of a pod."""
    if not decision.traceparent:
        return {"decision": decision.id}
    return {"decision": decision.id, "trace_id": trace_id_of(decision.traceparent)}


def _is_same(scores: npt.NDArray[np.float32]) -> bool:
    """Whether all nodes have one score; mostly the first and the last one do to see that not."""
    return not len(scores) or bool(scores[0] == scores[-1] and (scores == scores[0]).all())
