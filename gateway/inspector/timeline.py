"""What plugins took and rejected over time: differences of the metrics, noted every few seconds.

Cycles are not slowed down: they count as they do anyway, and the counts are read from aside.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from gateway.decisions.query import BadQueryError, refusing
from moorage.units.durations import parse_duration

_PLUGINS = "moorage_plugin_execution_duration_seconds"
_PHASES = "moorage_cycle_duration_seconds"
_REJECTED = "moorage_rejected_nodes_total"
_FAILED = "moorage_plugin_failures_total"
_NAMES = (*(f"{each}_{of}" for each in (_PLUGINS, _PHASES) for of in ("bucket", "sum")),)

INTERVALS = 720
"""Intervals that are kept, the newest; each takes about 0.1 kB for a plugin."""

WINDOW = 900.0
"""Seconds that are shown without a `since`."""

Series = tuple[str, str]
"""A plugin and the phase, or "" and the phase for all plugins together."""


class _Totals:
    """Counts since the start of the process."""

    def __init__(self) -> None:
        self.buckets: dict[Series, dict[float, float]] = {}
        self.numbers: dict[tuple[str, Series], float] = {}


class Interval(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """What happened to a series in an interval; times in seconds, None without a cycle."""

    cycles: int = 0
    mean: float | None = None
    p50: float | None = None
    p99: float | None = None
    rejected: int = 0
    failures: int = 0


class Timeline:
    """The newest intervals."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        interval: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read *registry*, which has the metrics of cycles, every *interval* seconds."""
        self._metrics = registry.restricted_registry([*_NAMES, _REJECTED, _FAILED])
        self._interval = interval
        self._clock = clock
        self._kept: deque[tuple[float, dict[Series, Interval]]] = deque(maxlen=INTERVALS)
        self._before = self._read()

    async def run(self) -> None:
        """Note intervals, until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            self.note()

    def note(self) -> None:
        """End an interval."""
        now, before = self._read(), self._before
        self._before = now
        self._kept.append((self._clock(), {key: _between(key, before, now) for key in now.buckets}))

    def since(self, begin: float) -> dict[str, Any]:
        """Return the intervals that ended after *begin*, in seconds since 1970, as JSON content."""
        kept = [each for each in self._kept if each[0] > begin]
        return {
            "interval": self._interval,
            "times": [round(end, 3) for end, _ in kept],
            "series": [
                {"plugin": key[0], "phase": key[1], **_columns([by.get(key) for _, by in kept])}
                for key in self._before.buckets
            ],
        }

    def _read(self) -> _Totals:
        totals = _Totals()
        for family in self._metrics.collect():
            for name, labels, value, *_ in family.samples:
                series = labels.get("plugin", ""), labels.get("phase", "filter")
                if name.endswith("_bucket"):
                    totals.buckets.setdefault(series, {})[float(labels["le"])] = value
                else:
                    totals.numbers[name, series] = value
        return totals


def _between(series: Series, before: _Totals, now: _Totals) -> Interval:
    def difference(name: str) -> float:
        return now.numbers.get((name, series), 0.0) - before.numbers.get((name, series), 0.0)

    earlier = before.buckets.get(series, {})
    counts = {le: value - earlier.get(le, 0.0) for le, value in now.buckets[series].items()}
    cycles = counts.get(float("inf"), 0.0)
    seconds = difference(f"{_PLUGINS if series[0] else _PHASES}_sum")
    return Interval(
        cycles=int(cycles),
        mean=round(seconds / cycles, 7) if cycles else None,
        p50=quantile(counts, 0.5),
        p99=quantile(counts, 0.99),
        rejected=int(difference(_REJECTED)),
        failures=int(difference(_FAILED)),
    )


def quantile(counts: Mapping[float, float], share: float) -> float | None:
    """Return about where so large a share of values lies, by cumulative counts of buckets.

    Values are taken to be spread evenly in their bucket, as Prometheus does.
    """
    total = counts.get(float("inf"), 0.0)
    if not total:
        return None
    lower = below = 0.0
    for upper, count in counts.items():
        if count >= share * total:
            if upper == float("inf"):
                return lower
            part = (share * total - below) / (count - below) if count > below else 1.0
            return round(lower + (upper - lower) * part, 7)
        lower, below = upper, count
    return lower


def _columns(intervals: Sequence[Interval | None]) -> dict[str, list[Any]]:
    nothing = Interval()
    return {
        field: [getattr(each or nothing, field) for each in intervals]
        for field in Interval.__struct_fields__
    }


def plugin_route(timeline: Timeline) -> web.RouteDef:
    """Return the route of `GET /plugins?since=DURATION`."""

    async def show(request: web.Request) -> web.Response:
        since = request.query.get("since", "")
        try:
            seconds = parse_duration(since) if since else WINDOW
        except ValueError as error:
            raise BadQueryError(f"since: {error}") from error
        response = web.json_response(timeline.since(time.time() - seconds))
        response.enable_compression()
        return response

    return web.get("/plugins", refusing(show))
