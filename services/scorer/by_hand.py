"""Scores in steps, for a person who must not keep gateways waiting."""

from functools import partial

import numpy as np
from msgspec.structs import replace

from moorage import Nodes, Pod
from moorage.execution import Profile, Supervisor
from moorage_host.rpc.sessions.by_hand import Steps, joined
from services.scorer.engine import ScoreRun, run_normalization, run_scores, run_shard


async def score_in_steps(steps: Steps[ScoreRun]) -> ScoreRun:
    """Score some nodes in each step, as replicas do that get a shard each; then normalise."""
    if steps.is_one:
        return await steps.run(run_scores)
    shards = [await steps.run(partial(_score_part, part=part)) for part in steps.parts()]
    agreed = [name for name in shards[0].raw if all(name in shard.raw for shard in shards)]
    raw = {name: np.concatenate([shard.raw[name] for shard in shards]) for name in agreed}
    ranked = await steps.run(partial(run_normalization, raw=raw))
    plugins = joined([shard.plugins for shard in shards])
    later = {run.plugin: run for run in ranked.plugins}
    for run in plugins:
        if after := later.get(run.plugin):
            run.seconds += after.seconds
            run.failure = run.failure or after.failure
            run.note = after.note or run.note
    return replace(ranked, plugins=plugins)


async def _score_part(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor, *, part: slice
) -> ScoreRun:
    return await run_shard(profile, pod, nodes, supervisor, rows=nodes.rows[part])
