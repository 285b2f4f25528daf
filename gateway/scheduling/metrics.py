"""What is counted about cycles."""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter

from gateway.cycle import Cycle
from gateway.cycle.decision import FilterRecord
from gateway.replicas.metrics import SECONDS
from moorage_host.process.histogram import FastHistogram

BindCheckOutcome = Literal["spared", "passed", "rejected", "failed"]


class CycleMetrics:
    """The metrics of cycles, with children that are looked up once.

    Attributes:
        foreign: Counts a call for a pod that is not ours.
        stale: Counts a call that failed since the state is too old.
        claimed: Counts a claim.
        bind_checked: Counts a bind, by whether its node was checked again.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._whole = FastHistogram(
            "moorage_scheduling_cycle_seconds",
            "Time of a scheduling cycle, from kube-scheduler's call to the last score.",
            buckets=SECONDS,
            registry=registry,
        ).observer()
        self._queue = FastHistogram(
            "moorage_cycle_queue_seconds",
            "Time that a cycle waited for those before it.",
            buckets=SECONDS,
            registry=registry,
        ).observer()
        self._neutral: dict[str, Counter] = {}
        self._neutral_family = Counter(
            "moorage_neutral_scores",
            "Cycles in which a score plugin skipped the pod or scored all nodes alike.",
            ["plugin"],
            registry=registry,
        )
        self._rounded = Counter(
            "moorage_rounded_scores",
            "Cycles in which rounding made worse nodes equal to the best, see scoreScale.",
            registry=registry,
        )
        self._rejected: dict[str, Counter] = {}
        self._rejected_family = Counter(
            "moorage_rejected_nodes",
            "Nodes that a filter plugin rejected, without those that kube-scheduler's own filters"
            " did.",
            ["plugin"],
            registry=registry,
        )
        self.foreign = Counter(
            "moorage_foreign_pods",
            "Calls for pods whose schedulerName has no profile; all nodes passed.",
            registry=registry,
        ).inc
        self.claimed = Counter("moorage_claims", "Claims.", registry=registry).inc
        bind_checks = Counter(
            "moorage_bind_checks",
            "Checks of a node at the bind: passed, rejected, failed (could not be asked), spared "
            "(nothing had changed).",
            ["outcome"],
            registry=registry,
        )
        outcomes: tuple[BindCheckOutcome, ...] = ("spared", "passed", "rejected", "failed")
        self.bind_checked = {each: bind_checks.labels(each) for each in outcomes}
        self.stale = Counter(
            "moorage_stale_calls",
            "Calls that failed because the API server was silent for longer than --max-cache-age.",
            registry=registry,
        ).inc

    def on_cycle_end(self, cycle: Cycle) -> None:
        """Observe a cycle that has ended; its values lead to the decision, and to the trace."""
        decision, labels = cycle.decision, cycle.exemplar_labels
        self._whole(decision.seconds, labels)
        self._queue(decision.queue_seconds, labels)
        score = decision.score
        if score is None:
            return
        if score.tied:
            self._rounded.inc()
        for plugin in score.plugins:
            if plugin.skipped:
                _child(self._neutral, self._neutral_family, plugin.plugin).inc()
        for each in cycle.scores.plugins if cycle.scores is not None else ():
            # Mostly the first and the last score do to see that nodes have several.
            scores = each.normalized
            if not len(scores) or (scores[0] == scores[-1] and bool((scores == scores[0]).all())):
                _child(self._neutral, self._neutral_family, each.plugin).inc()

    def rejected(self, record: FilterRecord) -> None:
        """Count the rejections of a filter phase."""
        for plugin in record.plugins:
            if plugin.rejected:
                child = _child(self._rejected, self._rejected_family, plugin.plugin)
                child.inc(plugin.rejected)


def _child(known: dict[str, Counter], family: Counter, plugin: str) -> Counter:
    """Return a plugin's child of a family: to look it up there takes seven times as long."""
    child = known.get(plugin)
    if child is None:
        child = known[plugin] = family.labels(plugin)
    return child
