"""The conformance kit finds nothing in Moorage."""

import pytest

from cli.conformance.requests import RECORDED_NODES, Requests
from cli.conformance.running import Report, run_checks
from moorage_host.policy.fields import DEFAULT_SCORE_SCALE
from sandbox.scheduler.config import ExtenderConfig
from tests.stack.stack import Stack, node

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("names_only", [True, False], ids=["names", "whole nodes"])
async def test_nothing_is_found(stack: Stack, names_only: bool) -> None:
    await stack.create([node(name) for name in RECORDED_NODES])
    config = ExtenderConfig(
        url_prefix=stack.addresses.extender,
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        bind_verb="bind",
        weight=1,
        node_cache_capable=names_only,
    )
    report = await run_checks(
        Requests(config=config, scheduler_name="moorage", best_score=DEFAULT_SCORE_SCALE)
    )
    assert found(report) == {}
    ran = {outcome.check for outcome in report.outcomes if not outcome.skipped}
    skipped = {outcome.check for outcome in report.outcomes} - ran
    assert skipped == {"http-not-managed", "http-idle"}
    assert report.sent["filter"] > 30
    assert report.sent["bind"] > 50


def found(report: Report) -> dict[str, list[str]]:
    """Return what was found, by check."""
    return {
        outcome.check: [
            f"{f.severity}: {f.consequence}: {f.sent}: {f.got}" for f in outcome.findings
        ]
        for outcome in report.outcomes
        if outcome.findings
    }
