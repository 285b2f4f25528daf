"""What was found out about one shadow since it, or its profile, last changed; its share of time."""

from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Metric

from gateway.cycle import Cycle
from gateway.whatif.comparing import Comparison
from gateway.whatif.shadow_report import (
    SKIPS,
    Disagreement,
    FilterDifference,
    Kind,
    ReasonCycles,
    ShadowReport,
    Skip,
    WinnerDifference,
    filter_differences,
    winner_difference,
    words,
)

BURST_SECONDS = 1.0
"""Of how many seconds the share can be saved up: in a quiet time nothing more is."""


class Budget:
    """A token bucket: the seconds that may be spent on the shadow of one profile.

    Attributes:
        spent: The seconds that were spent in all.
    """

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        """Allow a *share* of the time on *clock*, 0..1."""
        self.share = share
        self.spent = 0.0
        self._clock = clock
        self._began = self._filled = clock()
        self._left = share * BURST_SECONDS

    @property
    def allows(self) -> bool:
        """Whether something may be spent now; how much is known only afterwards."""
        now = self._clock()
        saved = self._left + (now - self._filled) * self.share
        self._left, self._filled = min(saved, self.share * BURST_SECONDS), now
        return self._left > 0

    @property
    def used(self) -> float:
        """The share of the time that was spent so far, 0..1."""
        return self.spent / max(self._clock() - self._began, 1e-9)

    def spend(self, seconds: float) -> None:
        """Take what a run needed; perhaps more than is left, which later time makes good."""
        self.spent += seconds
        self._left -= seconds


class ShadowMetrics:
    """The metrics of shadows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.cycles = Metric(
            "moorage_shadow_cycles",
            "Cycles on which the shadow of a profile was run: it agreed with the profile, "
            "disagreed, or failed.",
            ["profile", "outcome"],
            registry=registry,
        )
        self.skipped = Metric(
            "moorage_shadow_skipped_cycles",
            "Cycles on which it was not run: a replica or another cycle was busy, its share of the "
            "time was used up, the state had changed, or the cycle itself had failed.",
            ["profile", "reason"],
            registry=registry,
        )
        self.disagreements = Metric(
            "moorage_shadow_disagreements",
            "Cycles in which it disagreed on which nodes can run the pod (filter), or on which is "
            "the best (winner).",
            ["profile", "kind"],
            registry=registry,
        )
        self.seconds = Metric(
            "moorage_shadow_seconds",
            "Time that was spent on it, replicas and gateway together.",
            ["profile"],
            registry=registry,
        )


COUNTED_REASONS = 256
"""Different reasons that are counted; further ones are left out."""

SHOWN_REASONS = 10
"""Reasons that a report has, the most frequent."""


class Tally:
    """Counts, and the newest disagreements.

    Attributes:
        revision: The revision of the policy.
        budget: The time that the shadow may take.
    """

    def __init__(
        self, profile: str, revision: str, budget: Budget, metrics: ShadowMetrics, kept: int
    ) -> None:
        """Keep the newest disagreements, at most so many; count in *metrics* too."""
        self.revision = revision
        self.budget = budget
        self._profile = profile
        self._metrics = metrics
        self._since = datetime.now(UTC).replace(microsecond=0)
        self._compared = 0
        self._agreed = 0
        self._kinds: Counter[Kind] = Counter()
        self._skipped: Counter[Skip] = Counter()
        self._failed = 0
        self._last_failure = ""
        self._correlations = [0, 0.0]
        self._reasons: Counter[tuple[Kind, str, str]] = Counter()
        self._disagreements: deque[Disagreement] = deque(maxlen=kept)

    def skipped(self, reason: Skip) -> None:
        """Count a cycle that was not compared."""
        self._skipped[reason] += 1
        self._metrics.skipped.labels(self._profile, reason).inc()

    def failed(self, reason: str) -> None:
        """Count a cycle in which the shadow gave no answer."""
        self._failed += 1
        self._last_failure = reason
        self._metrics.cycles.labels(self._profile, "failed").inc()

    def spent(self, seconds: float) -> None:
        """Count the time that a run took."""
        self.budget.spend(seconds)
        self._metrics.seconds.labels(self._profile).inc(seconds)

    def compared(self, cycle: Cycle, found: Comparison) -> None:
        """Count a comparison, and keep it if they disagree."""
        differences, winner = filter_differences(found), winner_difference(found)
        kinds: list[Kind] = ["filter"] * bool(differences)
        kinds += ["winner"] * (winner is not None)
        self._compared += 1
        self._metrics.cycles.labels(self._profile, "disagreed" if kinds else "agreed").inc()
        if (correlation := found.correlation) is not None:
            self._correlations[0] += 1
            self._correlations[1] += correlation
        if not kinds:
            self._agreed += 1
            return
        self._kinds.update(kinds)
        for kind in kinds:
            self._metrics.disagreements.labels(self._profile, kind).inc()
        for reason in _reasons(differences, winner):
            if reason in self._reasons or len(self._reasons) < COUNTED_REASONS:
                self._reasons[reason] += 1
        pod = cycle.pod
        self._disagreements.appendleft(
            Disagreement(
                id=cycle.decision.id,
                time=cycle.decision.time,
                namespace=pod.namespace,
                pod=pod.name,
                uid=pod.uid,
                nodes=len(found.before.rows),
                feasible=int(found.before.feasible.sum()),
                shadow_feasible=int(found.after.feasible.sum()),
                live=winner.live if winner else "",
                shadow=winner.shadow if winner else "",
                reasons=list(words(differences, winner)),
                filter=differences,
                winner=winner,
            )
        )

    def report(self) -> ShadowReport:
        """Return all that."""
        ordered, total = self._correlations
        return ShadowReport(
            profile=self._profile,
            since=self._since,
            policy_revision=self.revision,
            max_share=self.budget.share,
            share=round(self.budget.used, 4),
            agreement=self._agreed / self._compared if self._compared else None,
            rank_correlation=total / ordered if ordered else None,
            compared=self._compared,
            agreed=self._agreed,
            disagreed_filter=self._kinds["filter"],
            disagreed_winner=self._kinds["winner"],
            failed=self._failed,
            last_failure=self._last_failure,
            skipped={reason: self._skipped[reason] for reason in SKIPS},
            reasons=[
                ReasonCycles(kind=kind, plugin=plugin, reason=reason, cycles=cycles)
                for (kind, plugin, reason), cycles in self._reasons.most_common(SHOWN_REASONS)
            ],
            disagreements=list(self._disagreements),
        )


def _reasons(
    differences: list[FilterDifference], winner: WinnerDifference | None
) -> set[tuple[Kind, str, str]]:
    reasons: set[tuple[Kind, str, str]] = set()
    for each in differences:
        who = "shadow" if each.by == "shadow" else "live profile"
        reasons.add(("filter", each.plugin, f"only the {who} rejects: {each.reason}"))
    if winner is not None:
        reasons.add(("winner", winner.plugin, winner.reason))
    return reasons
