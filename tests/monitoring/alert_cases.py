"""For each alert the series under which it has to fire."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.monitoring.series import (
    AGE,
    ANNOTATED,
    ANSWERED,
    BACKGROUND,
    BIND_PLUGIN,
    DAY,
    DEADLINE,
    DIFFERENCES,
    FAILURES,
    JOURNAL,
    LEADER,
    POLICY,
    TERMS,
    WELL,
    Series,
    build,
    certificate,
    durations,
    growing,
    queue,
    ready,
    requests,
    steady,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What fires an alert.

    Attributes:
        alert: Its name.
        severity: The rule that fires, of those with that name.
        series: What differs from an installation that is well; "" leaves a series out.
        silent_until: The last minute at which it must not fire yet, 0 for none.
        fires_at: A minute at which it must fire.
        labels: Its labels besides name and severity.
    """

    alert: str
    severity: str
    series: Series
    fires_at: int
    silent_until: int = 0
    labels: Mapping[str, str] = field(default_factory=lambda: {"namespace": "moorage"})

    def __str__(self) -> str:
        return f"{self.alert}-{self.severity}-{'-'.join(self.labels.values())}"


def case(
    alert: str,
    severity: str,
    series: Series,
    *,
    fires_at: int,
    silent_until: int = 0,
    **labels: str,
) -> Case:
    """Return a case of an alert of the namespace moorage."""
    return Case(
        alert=alert,
        severity=severity,
        series=series,
        silent_until=silent_until,
        fires_at=fires_at,
        labels={"namespace": "moorage", **labels},
    )


def _stops(series: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(series, "")


CASES = (
    case("MoorageNoLeader", "page", {LEADER: "1x9 0x110"}, silent_until=12, fires_at=14),
    case(  # its processes are there, but no gateway is
        "MoorageNoLeader",
        "page",
        _stops([name for name in WELL if "gateway-" in name]),
        silent_until=2,
        fires_at=4,
    ),
    Case(
        alert="MoorageNoLeader",
        severity="page",
        series=_stops(WELL),
        silent_until=2,
        fires_at=4,
        labels={},
    ),
    case("MoorageNoFilter", "page", {ready("filter"): "1x9 0x110"}, silent_until=11, fires_at=13),
    case(
        "MoorageStateStale",
        "page",
        {AGE: "0x9 0+60x110"},
        silent_until=13,
        fires_at=15,
        pod="gateway-0",
        resource="pods",
    ),
    case(
        "MoorageCallsFailing",
        "page",
        {requests("filter", "failed"): growing(60)},
        silent_until=9,
        fires_at=15,
        verb="filter",
    ),
    case(
        "MoorageCallsFailing",
        "page",
        {requests("filter", "ok"): steady(9), requests("filter", "timeout"): growing(2)},
        silent_until=9,
        fires_at=15,
        verb="filter",
    ),
    case(
        "MoorageBindCallsFailing",
        "page",
        {requests("bind", "failed"): growing(700)},
        silent_until=9,
        fires_at=15,
        verb="bind",
    ),
    case(
        "MoorageCallersRefused",
        "page",
        {requests("filter", "ok"): steady(9), requests("filter", "failed"): steady(9)},
        silent_until=5,
        fires_at=20,
    ),
    case(
        "MoorageCertificateExpires",
        "page",
        {certificate("expiry"): steady(2 * 3600 + 60)},
        silent_until=6,
        fires_at=8,
        pod="gateway-0",
        identity="moorage-gateway",
    ),
    case(
        "MoorageCertificateExpires",
        "ticket",
        {certificate("expiry"): steady(DAY / 8)},
        silent_until=14,
        fires_at=16,
        pod="gateway-0",
        identity="moorage-gateway",
    ),
    case("MoorageNoScorer", "ticket", {ready("scorer"): "2x9 0x110"}, silent_until=14, fires_at=16),
    case(
        "MoorageScoresLost",
        "ticket",
        {requests("prioritize", "timeout"): growing(60)},
        silent_until=9,
        fires_at=15,
        verb="prioritize",
    ),
    case(
        "MoorageCallsNearTimeout",
        "ticket",
        durations("filter", 4),
        silent_until=14,
        fires_at=20,
        verb="filter",
    ),
    case("MoorageCyclesQueue", "ticket", queue(3), silent_until=14, fires_at=20),
    case(
        "MooragePluginFails",
        "ticket",
        {FAILURES: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Load",
    ),
    case(
        "MooragePluginFails",
        "ticket",
        {BIND_PLUGIN: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Gang",
    ),
    case(
        "MooragePluginFails",
        "ticket",
        {BACKGROUND: growing(1)},
        silent_until=14,
        fires_at=20,
        plugin="Load",
    ),
    case(
        "MooragePolicyRefused",
        "ticket",
        {POLICY: "0x9 1x110"},
        silent_until=19,
        fires_at=21,
        pod="gateway-0",
    ),
    case(
        "MoorageBindOutcomesUnknown",
        "ticket",
        {DEADLINE: growing(60)},
        silent_until=9,
        fires_at=15,
    ),
    case(
        "MoorageLeaderChanges",
        "ticket",
        {TERMS: "3x20 4+1x99"},
        silent_until=25,
        fires_at=35,
    ),
    case(
        "MoorageCacheWrong",
        "ticket",
        {DIFFERENCES: "0x20 1x99"},
        silent_until=20,
        fires_at=22,
        phase="filter",
    ),
    case(  # the counter appears with the first one
        "MoorageCacheWrong",
        "ticket",
        {DIFFERENCES: "_x20 1x99"},
        silent_until=19,
        fires_at=22,
        phase="filter",
    ),
    case(
        "MoorageMeasurementsOld",
        "ticket",
        {ANSWERED: "0+60x20 1200x99"},
        silent_until=34,
        fires_at=37,
        pod="scorer-0",
        source="load",
    ),
    case(  # it never answered
        "MoorageMeasurementsOld",
        "ticket",
        {ANSWERED: steady(0)},
        silent_until=14,
        fires_at=17,
        pod="scorer-0",
        source="load",
    ),
    case(
        "MoorageAnnotationsOld",
        "ticket",
        {ANNOTATED: "0+60x20 1200x99"},
        silent_until=39,
        fires_at=42,
    ),
    case(
        "MoorageJournalDrops",
        "ticket",
        {JOURNAL: growing(1)},
        silent_until=14,
        fires_at=20,
        pod="gateway-0",
        cause="write",
    ),
    case(
        "MoorageVersionsDiffer",
        "ticket",
        {build("scorer", "1.1.0"): steady(1)},
        silent_until=59,
        fires_at=61,
    ),
)
