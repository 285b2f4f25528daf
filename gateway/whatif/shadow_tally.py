"""What was found out about one shadow since it, or its profile, last changed; its share of time.

`GET /shadow` shows it.
"""

from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, get_args

import structlog
from msgspec import field
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Metric

from gateway.cycle import Cycle
from gateway.cycle.decision import Record
from gateway.whatif.comparing import Comparison, Kind

log = structlog.get_logger()

Skip = Literal["busy", "share", "changed", "live failed", "stopped"]
"""Why a cycle was not compared: another one came or ran, the share of the time is used up, no
replica could show its state any more, the live profile has no answer, or the shadow has stopped."""

MOST_FAILURES = 3
"""Failures in a row after which a shadow stops itself."""

COSTLY_SECONDS = 0.1
"""How long a failure may take; after one that took longer, the shadow stops at once."""


class Disagreement(Record):
    """A cycle in which a shadow would have decided otherwise.

    Attributes:
        id: That of the decision.
        nodes: How many nodes the cycle was about.
        feasible: How many of them the live profile lets pass.
        shadow_feasible: How many of them the shadow does.
        live: The live profile's best node if the shadow has another one.
        shadow: The shadow's best node if it is another one.
        reasons: Why, in words.
    """

    id: str
    time: datetime
    namespace: str
    pod: str
    uid: str
    nodes: int
    feasible: int
    shadow_feasible: int
    live: str = ""
    shadow: str = ""
    reasons: list[str] = field(default_factory=list)


class ReasonCycles(Record):
    """In how many cycles outcomes differed for one reason."""

    kind: Kind
    plugin: str
    reason: str
    cycles: int


class ShadowReport(Record, omit_defaults=False):
    """A shadow, since it or its profile last changed.

    Attributes:
        agreement: The share of the compared cycles in which it agreed; None before the first.
        max_share: The share of the time that it may take.
        share: The share that it took.
        last_failure: Why it failed last.
        stopped: Whether it stopped itself after that; it runs again with another policy.
        reasons: Those that are most frequent, in descending order.
        disagreements: The newest, newest first.
    """

    profile: str
    since: datetime
    policy_revision: str
    max_share: float
    share: float = 0.0
    agreement: float | None = None
    compared: int = 0
    agreed: int = 0
    disagreed_filter: int = 0
    disagreed_winner: int = 0
    failed: int = 0
    last_failure: str = ""
    stopped: bool = False
    skipped: dict[Skip, int] = field(default_factory=lambda: dict.fromkeys(get_args(Skip), 0))
    reasons: list[ReasonCycles] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)


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

KEPT = 100
"""Disagreements that are kept, the newest; one takes about 1 kB."""

SHOWN_REASONS = 10
"""Reasons that a report has, the most frequent, and a disagreement at the most."""


class Tally:
    """Counts, and the newest disagreements.

    Attributes:
        revision: The revision of the policy.
        budget: The time that the shadow may take.
        stopped: Whether it does not run any more, under this policy.
    """

    def __init__(self, profile: str, revision: str, budget: Budget, metrics: ShadowMetrics) -> None:
        """Count in *metrics* too."""
        self.revision = revision
        self.budget = budget
        self._profile = profile
        self._metrics = metrics
        self.stopped = False
        self._failures_in_a_row = 0
        self._counts = ShadowReport(
            profile=profile,
            since=datetime.now(UTC).replace(microsecond=0),
            policy_revision=revision,
            max_share=budget.share,
        )
        self._reasons: Counter[tuple[Kind, str, str]] = Counter()
        self._disagreements: deque[Disagreement] = deque(maxlen=KEPT)

    def skipped(self, reason: Skip) -> None:
        """Count a cycle that was not compared."""
        self._counts.skipped[reason] += 1
        self._metrics.skipped.labels(self._profile, reason).inc()

    def failed(self, reason: str, *, costly: bool) -> None:
        """Count a cycle in which the shadow gave no answer, which may end it."""
        self._failures_in_a_row += 1
        if not self.stopped and (costly or self._failures_in_a_row >= MOST_FAILURES):
            self.stopped = self._counts.stopped = True
            log.warning("A shadow has stopped itself", profile=self._profile, failure=reason)
        self._counts.failed += 1
        self._counts.last_failure = reason
        self._metrics.cycles.labels(self._profile, "failed").inc()

    def spent(self, seconds: float) -> None:
        """Count the time that a run took."""
        self.budget.spend(seconds)
        self._metrics.seconds.labels(self._profile).inc(seconds)

    def compared(self, cycle: Cycle, found: Comparison) -> None:
        """Count a comparison, and keep it if they disagree."""
        why = found.differences()
        kinds = {each.kind for each in why}
        self._counts.compared += 1
        self._failures_in_a_row = 0
        self._counts.agreed += not kinds
        self._counts.disagreed_filter += "filter" in kinds
        self._counts.disagreed_winner += "winner" in kinds
        self._metrics.cycles.labels(self._profile, "disagreed" if kinds else "agreed").inc()
        if not kinds:
            return
        for kind in kinds:
            self._metrics.disagreements.labels(self._profile, kind).inc()
        for reason in {each[:3] for each in why}:
            if reason in self._reasons or len(self._reasons) < COUNTED_REASONS:
                self._reasons[reason] += 1
        pod, (live, shadow) = cycle.pod, found.best_nodes()
        self._disagreements.appendleft(
            Disagreement(
                id=cycle.decision.id,
                time=cycle.decision.time,
                namespace=pod.namespace,
                pod=pod.name,
                uid=pod.uid,
                nodes=len(found.live.rows),
                feasible=int(found.live.feasible.sum()),
                shadow_feasible=int(found.shadow.feasible.sum()),
                live=live,
                shadow=shadow,
                reasons=[each.text for each in why if each.text][:SHOWN_REASONS],
            )
        )

    def report(self) -> ShadowReport:
        """Return all that."""
        counts = self._counts
        return replace(
            counts,
            share=round(self.budget.used, 4),
            agreement=counts.agreed / counts.compared if counts.compared else None,
            reasons=[
                ReasonCycles(kind=kind, plugin=plugin, reason=reason, cycles=cycles)
                for (kind, plugin, reason), cycles in self._reasons.most_common(SHOWN_REASONS)
            ],
            disagreements=list(self._disagreements),
        )
