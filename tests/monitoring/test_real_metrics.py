"""Queries of dashboards and rules find data of real processes that a real Prometheus scrapes."""

import asyncio
from pathlib import Path

import pytest

from tests.monitoring.chart import QUERIES, Query, alerts, recorded
from tests.monitoring.installation import Installation, installed
from tests.monitoring.test_dashboards import filled, selectors
from tests.monitoring.workload import run_badly, run_well

FAULTS = {
    "])) > 0",
    "ALERTS",
    'grpc_code!="OK"',
    "moorage_bind_retries_total",
    "moorage_binds_fenced_total",
    "moorage_binds_total{outcome",
    "moorage_events_total",
    "moorage_http_refused_total",
    "moorage_plugin_failures_total",
    "moorage_settled_binds_total",
    "moorage_spans_total",
    "moorage_watch_restarts_total",
}
"""What only a fault makes appear: parts of queries."""

NOT_MADE = {
    'moorage_http_refused_total{port="extender",reason=~"handshake|identity"}': "no TLS here",
    'moorage_bind_plugin_results_total{result="failed"}': "no bind plugin fails here",
    "moorage_cache_differences_total": "no plugin lies here",
}
"""Selectors of rules that find nothing even then, and why; other tests have what they count."""


class Seen:
    """Which expressions have had data so far."""

    def __init__(self, installation: Installation, expressions: set[str]) -> None:
        self.missing = expressions
        self._installation = installation

    async def look(self, *, but: set[str], seconds: float = 60) -> set[str]:
        """Wait until all have had data, but for those that name *but*; return the others."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            for each in [*self.missing]:
                if await self._installation.query(each):
                    self.missing.remove(each)
            if not (left := {x for x in self.missing if not any(name in x for name in but)}):
                return left
            await asyncio.sleep(0.5)
        return left


@pytest.mark.timeout(300)
async def test_every_query_finds_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    panels = {filled(query.text) for query in QUERIES}
    named = {part for alert in alerts() for part in selectors(alert.expression)}
    named |= {part for text in recorded().values() for part in selectors(text)}
    async with installed(tmp_path) as installation:
        seen = Seen(installation, panels | named | set(recorded()))
        await run_well(installation)
        assert not await seen.look(but=FAULTS | set(NOT_MADE))
        for query in QUERIES:
            await check_labels(installation, query)
        for expression in (x for x in panels if "_bucket" in x and "moorage_cycle_" in x):
            found = await installation.exemplars(expression)
            assert all(each["decision"] for each in found), expression
            assert found, expression
        await run_badly(installation)
        assert not await seen.look(but=set(NOT_MADE))
        for rule in await installation.rules():
            assert (rule["health"], rule.get("lastError")) == ("ok", None), rule
        pending = {each["alertname"] for each in await installation.query("ALERTS")}
        assert {"MoorageNoScorer", "MooragePluginFails"} <= pending


async def check_labels(installation: Installation, query: Query) -> None:
    """Fail if a series lacks a label of its legend."""
    shown = query.legend.replace("}}", "{{").split("{{")[1::2]
    for labels in await installation.query(filled(query.text)):
        assert not {name for name in shown if not labels.get(name)}, f"{query}: {labels}"
