"""The engines of filter and scorer in this process, with outcomes as the gateway has them."""

from collections.abc import Iterable

import numpy as np

from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.nodes import bitmap_of
from gateway.whatif.comparing import Outcome
from moorage import Nodes, Pod
from moorage.execution import PluginRun, PluginScores, Profile, Supervisor
from moorage.plugin.cycle_state import join_kept
from moorage_host.plugins.ranking import run_scores
from services.filter.engine import run_filters


async def filtered(profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor) -> Outcome:
    """Return the verdicts of a profile's filter plugins.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
    """
    run = await run_filters(profile, pod, nodes, supervisor)
    verdicts = PhaseVerdicts(
        bitmap=bitmap_of(nodes.rows),
        codes=run.codes,
        reasons=run.reasons,
        kept=join_kept(each.kept for each in run.plugins if not each.failure),
    )
    return Outcome(
        rows=nodes.rows,
        verdicts=verdicts,
        claimants=tuple(run.claimants),
        failures=_failures(run.plugins),
    )


async def scored(profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor) -> Outcome:
    """Return the scores of a profile's score plugins, none without an opinion; raises the same."""
    run = await run_scores(profile, pod, nodes, supervisor)
    failures = _failures(run.plugins)
    if run.totals is None:
        return Outcome(rows=nodes.rows, failures=failures)
    scores = PhaseScores(
        generation=0,
        bitmap=bitmap_of(nodes.rows),
        totals=run.totals.astype(np.float32),  # their precision on the wire
        plugins=[
            PluginScores(
                plugin=each.plugin,
                weight=each.weight,
                raw=each.raw,
                normalized=each.normalized.astype(np.float32),
            )
            for each in run.scores
        ],
    )
    return Outcome(rows=nodes.rows, scores=scores, failures=failures)


def _failures(runs: Iterable[PluginRun]) -> list[str]:
    return [f"{each.plugin}: {each.failure}" for each in runs if each.failure]
