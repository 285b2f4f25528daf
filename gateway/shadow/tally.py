"""What was found out about one shadow since it, or its profile, last changed."""

from collections import Counter, deque
from datetime import UTC, datetime

from gateway.decisions.cycle import SchedulingCycle
from gateway.shadow.budget import Budget
from gateway.shadow.comparing import Comparison
from gateway.shadow.outcomes import Outcome
from gateway.shadow.records import (
    SKIPS,
    Disagreement,
    Kind,
    ReasonCycles,
    ShadowReport,
    Skip,
)

MOST_REASONS = 256
"""Different reasons that are counted; further ones are left out."""

SHOWN_REASONS = 10
"""Reasons that a report has, the most frequent."""


class Tally:
    """Counts, and the newest disagreements.

    Attributes:
        revision: The revision of the policy.
        budget: The time that the shadow may take.
    """

    def __init__(self, profile: str, revision: str, budget: Budget, kept: int) -> None:
        """Keep the newest disagreements, at most so many."""
        self.revision = revision
        self.budget = budget
        self._profile = profile
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

    def failed(self, reason: str) -> None:
        """Count a cycle in which the shadow gave no answer."""
        self._failed += 1
        self._last_failure = reason

    def compared(
        self, cycle: SchedulingCycle, live: Outcome, shadow: Outcome, found: Comparison
    ) -> None:
        """Count a comparison, and keep it if they disagree."""
        self._compared += 1
        if found.correlation is not None:
            self._correlations[0] += 1
            self._correlations[1] += found.correlation
        if not found.kinds:
            self._agreed += 1
            return
        self._kinds.update(found.kinds)
        for reason in _reasons(found):
            if reason in self._reasons or len(self._reasons) < MOST_REASONS:
                self._reasons[reason] += 1
        pod = cycle.request.pod
        self._disagreements.appendleft(
            Disagreement(
                id=cycle.decision.id,
                time=cycle.decision.time,
                namespace=pod.namespace,
                pod=pod.name,
                uid=pod.uid,
                nodes=len(live.rows),
                feasible=int(live.feasible.sum()),
                shadow_feasible=int(shadow.feasible.sum()),
                live=found.winner.live if found.winner else "",
                shadow=found.winner.shadow if found.winner else "",
                reasons=list(found.words()),
                filter=found.filter,
                winner=found.winner,
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


def _reasons(found: Comparison) -> set[tuple[Kind, str, str]]:
    reasons: set[tuple[Kind, str, str]] = set()
    for each in found.filter:
        words = (
            "only the shadow rejects" if each.by == "shadow" else "only the live profile rejects"
        )
        reasons.add(("filter", each.plugin, f"{words}: {each.reason}"))
    if found.winner is not None:
        reasons.add(("winner", found.winner.plugin, found.winner.reason))
    return reasons
