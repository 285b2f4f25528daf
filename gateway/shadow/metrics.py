"""What is counted about shadows."""

from prometheus_client import CollectorRegistry, Counter

from gateway.shadow.records import Kind, Skip


class ShadowMetrics:
    """The metrics of shadows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cycles = Counter(
            "moorage_shadow_cycles",
            "Cycles on which the shadow of a profile was run: it agreed with the profile, "
            "disagreed, or failed.",
            ["profile", "outcome"],
            registry=registry,
        )
        self._skipped = Counter(
            "moorage_shadow_skipped_cycles",
            "Cycles on which it was not run: a replica or another cycle was busy, its share of the "
            "time was used up, the state had changed, or the cycle itself had failed.",
            ["profile", "reason"],
            registry=registry,
        )
        self._disagreements = Counter(
            "moorage_shadow_disagreements",
            "Cycles in which it disagreed on which nodes can run the pod (filter), or on which is "
            "the best (winner).",
            ["profile", "kind"],
            registry=registry,
        )
        self._seconds = Counter(
            "moorage_shadow_seconds",
            "Time that was spent on it, replicas and gateway together.",
            ["profile"],
            registry=registry,
        )

    def compared(self, profile: str, kinds: list[Kind]) -> None:
        """Count a comparison, with the kinds of disagreement that it found."""
        self._cycles.labels(profile, "disagreed" if kinds else "agreed").inc()
        for kind in kinds:
            self._disagreements.labels(profile, kind).inc()

    def failed(self, profile: str) -> None:
        """Count a cycle in which a shadow gave no answer."""
        self._cycles.labels(profile, "failed").inc()

    def skipped(self, profile: str, reason: Skip) -> None:
        """Count a cycle that was not compared."""
        self._skipped.labels(profile, reason).inc()

    def spent(self, profile: str, seconds: float) -> None:
        """Count time."""
        self._seconds.labels(profile).inc(seconds)
